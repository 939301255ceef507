"""The problems of ADBench, and a chain of Runge–Kutta steps.

F. Šrajer, Z. Kukelova and A. Fitzgibbon, "A benchmark of selected algorithmic differentiation tools
on some problems in computer vision and machine learning" (2018), doi:10.1080/10556788.2018.1435651.
Each is written from the published definition, as array code and in loops, in plain NumPy.
``python -m benchmarks.adbench`` prints the table.
"""
