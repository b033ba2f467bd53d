"""xarray hands its arrays and axes to a function; dask's go to tally.dask."""
import numpy as np
import xarray

import tally
import tally.dask


def mean(array, dims):
    """The mean of a DataArray along dimensions, in memory or in dask's chunks."""
    def along(x, axis):
        reduce = tally.mean if isinstance(x, np.ndarray) else tally.dask.mean
        return reduce(x, axis=axis)
    return array.reduce(along, dims)


if __name__ == "__main__":
    field = xarray.DataArray(np.random.default_rng(1).standard_normal((24, 40, 60)).astype("f4"),
                             dims=("time", "lat", "lon"))
    here, there = mean(field, ["lat", "lon"]), mean(field.chunk({"lat": 7, "time": 5}), ["lat", "lon"]).compute()
    assert here.equals(there)
    print(here.values[:3])
