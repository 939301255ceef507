"""Coroutines in f: event loops run them as they are, with derivatives."""

import asyncio

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([0.1, 0.2])


def gathered(x):
    async def step(v):
        await asyncio.sleep(0)
        return np.sin(v)

    async def main():
        task = asyncio.create_task(step(x[1] * x[0]))
        results = asyncio.Queue()
        await results.put(x[0] * x[1])
        async with asyncio.Lock():
            y = await results.get()
        return sum(await asyncio.gather(step(x[0]), step(x[1]))) * y + await task

    return asyncio.run(main())


def by_hand(x):
    return (np.sin(x[0]) + np.sin(x[1])) * x[0] * x[1] + np.sin(x[0] * x[1])


@pytest.mark.parametrize("chunk", [1, 2, None])
def test_asyncio(chunk):
    expected = fwdad.grad(by_hand)(X)
    assert_allclose(fwdad.jacobian(gathered, X, mode="forward", chunk=chunk), expected, rtol=1e-13)
    assert_allclose(fwdad.grad(gathered)(X), expected, rtol=1e-13)
    assert_allclose(fwdad.hessian(gathered, X), fwdad.hessian(by_hand, X), rtol=1e-12)
