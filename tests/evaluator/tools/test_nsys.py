"""An export of Nsight Systems, made here with the tables and columns that its documentation lists."""

import sqlite3
from contextlib import closing

import pytest

from evaluator.nsys import read_export

KERNEL = "(start, end, demangledName, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory)"


def export(path, kernels=(), fills=()):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(7, "void shift<float, 3>(float*)"), (9, "other")])
        if kernels:
            database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL {KERNEL}")
            database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", kernels)
        if fills:
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, bytes)")
            database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (?, ?, ?)", fills)
    return path


def test_kernels_and_fills_come_in_the_order_of_time_with_names_and_shapes(tmp_path):
    path = export(tmp_path / "a.sqlite", [(5000, 7500, 7, 4, 2, 1, 32, 1, 1, 128, 1024)], [(1000, 2000, 64)])
    fill, kernel = read_export(path)
    assert (fill.kind, fill.nbytes, fill.start_us, fill.length_us) == ("fill", 64, 1.0, 1.0)
    assert (kernel.kind, kernel.name, kernel.length_us) == ("kernel", "void shift<float, 3>(float*)", 2.5)
    assert (kernel.grid, kernel.block, kernel.shared_bytes) == ((4, 2, 1), (32, 1, 1), 1152)


def test_an_export_without_activities_is_empty_and_a_missing_one_is_an_error(tmp_path):
    assert read_export(export(tmp_path / "a.sqlite")) == []
    with pytest.raises(sqlite3.Error):
        read_export(tmp_path / "none.sqlite")
