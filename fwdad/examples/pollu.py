"""POLLU: the chemistry of a polluted atmosphere, 20 species in 25 reactions, stiff.

Source: J. G. Verwer (1994), "Gauss-Seidel iteration for stiff ODEs from chemical kinetics",
SIAM J. Sci. Comput. 15, 1243-1250; F. Mazzia and C. Magherini, Test Set for Initial Value Problem
Solvers, problem POLLU. Concentrations in ppm, time in minutes, 0 <= t <= 60.

Three independent integrations of these equations reproduce the published ``Y_END`` to 12 digits
in every component. The sixteenth is about 4e-18: give a solver ``atol <= 1e-22``, or its relative
error means nothing.
"""

import numpy as np

SPECIES = (
    "NO2", "NO", "O3P", "O3", "HO2", "OH", "HCHO", "CO", "ALD", "MEO2",
    "C2O3", "CO2", "PAN", "CH3O", "HNO3", "O1D", "SO2", "SO4", "NO3", "N2O5",
)  # fmt: skip

T_END = 60.0

Y_START = np.zeros(20)
Y_START[[1, 3, 6, 7, 8, 16]] = [0.2, 0.04, 0.1, 0.3, 0.01, 0.007]  # NO O3 HCHO CO ALD SO2

Y_END = np.array([
    5.646255480022769e-02, 1.342484130422339e-01, 4.139734331099427e-09, 5.523140207484359e-03,
    2.018977262302196e-07, 1.464541863493966e-07, 7.784249118997964e-02, 3.245075353396018e-01,
    7.494013383880406e-03, 1.622293157301561e-08, 1.135863833257075e-08, 2.230505975721359e-03,
    2.087162882798630e-04, 1.396921016840158e-05, 8.964884856898295e-03, 4.352846369330103e-18,
    6.899219696263405e-03, 1.007803037365946e-04, 1.772146513969984e-06, 5.682943292316392e-05,
])  # fmt: skip


def pollu(t, y):  # noqa: ARG001 (solvers pass t, and this chemistry does not depend on it)
    """Rate of change of the 20 concentrations, in scalar form.

    Parameters
    ----------
    t : float
        Time in minutes; the system is autonomous.
    y : array_like, shape (20,)
        Concentrations, in the order of ``SPECIES``.

    Returns
    -------
    numpy.ndarray, shape (20,)
        dy/dt in ppm per minute.
    """
    r1 = 0.35 * y[0]
    r2 = 26.6 * y[1] * y[3]
    r3 = 1.23e4 * y[4] * y[1]
    r4 = 8.6e-4 * y[6]
    r5 = 8.2e-4 * y[6]
    r6 = 1.5e4 * y[6] * y[5]
    r7 = 1.3e-4 * y[8]
    r8 = 2.4e4 * y[8] * y[5]
    r9 = 1.65e4 * y[10] * y[1]
    r10 = 9e3 * y[10] * y[0]
    r11 = 2.2e-2 * y[12]
    r12 = 1.2e4 * y[9] * y[1]
    r13 = 1.88 * y[13]
    r14 = 1.63e4 * y[0] * y[5]
    r15 = 4.8e6 * y[2]
    r16 = 3.5e-4 * y[3]
    r17 = 1.75e-2 * y[3]
    r18 = 1e8 * y[15]
    r19 = 4.44e11 * y[15]
    r20 = 1.24e3 * y[16] * y[5]
    r21 = 2.1 * y[18]
    r22 = 5.78 * y[18]
    r23 = 4.74e-2 * y[0] * y[3]
    r24 = 1.78e3 * y[18] * y[0]
    r25 = 3.12 * y[19]
    return np.array([
        -r1 - r10 - r14 - r23 - r24 + r2 + r3 + r9 + r11 + r12 + r22 + r25,  # NO2
        -r2 - r3 - r9 - r12 + r1 + r21,  # NO
        -r15 + r1 + r17 + r19 + r22,  # O3P
        -r2 - r16 - r17 - r23 + r15,  # O3
        -r3 + 2 * r4 + r6 + r7 + r13 + r20,  # HO2
        -r6 - r8 - r14 - r20 + r3 + 2 * r18,  # OH
        -r4 - r5 - r6 + r13,  # HCHO
        r4 + r5 + r6 + r7,  # CO
        -r7 - r8,  # ALD
        -r12 + r7 + r9,  # MEO2
        -r9 - r10 + r8 + r11,  # C2O3
        r9,  # CO2
        -r11 + r10,  # PAN
        -r13 + r12,  # CH3O
        r14,  # HNO3
        -r18 - r19 + r16,  # O1D
        -r20,  # SO2
        r20,  # SO4
        -r21 - r22 - r24 + r23 + r25,  # NO3
        -r25 + r24,  # N2O5
    ])  # fmt: skip


def pollu_stored(y):
    """Rate of change as :func:`pollu` gives it, stored element by element.

    The same chemistry in the other style in which such code is written: the result is an array made
    beforehand. Neither style calls the other, because each is differentiated as it stands.

    Parameters
    ----------
    y : array_like, shape (20,)
        Concentrations, in the order of ``SPECIES``.

    Returns
    -------
    numpy.ndarray, shape (20,)
        dy/dt in ppm per minute.
    """
    f = np.empty(20)
    r1 = 0.35 * y[0]
    r2 = 26.6 * y[1] * y[3]
    r3 = 1.23e4 * y[4] * y[1]
    r4 = 8.6e-4 * y[6]
    r5 = 8.2e-4 * y[6]
    r6 = 1.5e4 * y[6] * y[5]
    r7 = 1.3e-4 * y[8]
    r8 = 2.4e4 * y[8] * y[5]
    r9 = 1.65e4 * y[10] * y[1]
    r10 = 9e3 * y[10] * y[0]
    r11 = 2.2e-2 * y[12]
    r12 = 1.2e4 * y[9] * y[1]
    r13 = 1.88 * y[13]
    r14 = 1.63e4 * y[0] * y[5]
    r15 = 4.8e6 * y[2]
    r16 = 3.5e-4 * y[3]
    r17 = 1.75e-2 * y[3]
    r18 = 1e8 * y[15]
    r19 = 4.44e11 * y[15]
    r20 = 1.24e3 * y[16] * y[5]
    r21 = 2.1 * y[18]
    r22 = 5.78 * y[18]
    r23 = 4.74e-2 * y[0] * y[3]
    r24 = 1.78e3 * y[18] * y[0]
    r25 = 3.12 * y[19]
    f[0] = -r1 - r10 - r14 - r23 - r24 + r2 + r3 + r9 + r11 + r12 + r22 + r25
    f[1] = -r2 - r3 - r9 - r12 + r1 + r21
    f[2] = -r15 + r1 + r17 + r19 + r22
    f[3] = -r2 - r16 - r17 - r23 + r15
    f[4] = -r3 + 2 * r4 + r6 + r7 + r13 + r20
    f[5] = -r6 - r8 - r14 - r20 + r3 + 2 * r18
    f[6] = -r4 - r5 - r6 + r13
    f[7] = r4 + r5 + r6 + r7
    f[8] = -r7 - r8
    f[9] = -r12 + r7 + r9
    f[10] = -r9 - r10 + r8 + r11
    f[11] = r9
    f[12] = -r11 + r10
    f[13] = -r13 + r12
    f[14] = r14
    f[15] = -r18 - r19 + r16
    f[16] = -r20
    f[17] = r20
    f[18] = -r21 - r22 - r24 + r23 + r25
    f[19] = -r25 + r24
    return f
