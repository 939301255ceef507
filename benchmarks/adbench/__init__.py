"""The problems of ADBench (Šrajer, Kukelova and Fitzgibbon 2018, doi:10.1080/10556788.2018.1435651).

Each is written from the published definition, as array code and in loops, in plain NumPy; a chain of
Runge–Kutta steps joins them. ``python -m benchmarks.adbench`` prints the table.
"""
