"""Columns of pandas and polars, by group, where they lie."""
import pandas
import polars

import tally

sales = {"city": ["Ulm", "Rom", "Ulm", "Rom"], "price": [0.1, 1e16, 0.2, 1.0]}

frame = pandas.DataFrame(sales)
codes, cities = pandas.factorize(frame["city"])
for city, total in zip(cities, tally.group("sum", frame["price"], codes)):
    print("pandas", city, total)

frame = polars.DataFrame(sales)
city = frame["city"].cast(polars.Categorical)
totals = tally.group("sum", frame["price"], city.to_physical())
print("polars", totals)
