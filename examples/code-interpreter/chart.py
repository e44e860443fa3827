"""What an agent might write: reads a CSV file, and draws a chart of it."""
import csv
import pygal

with open("sales.csv") as file:
    rows = list(csv.DictReader(file))
chart = pygal.Bar(title="Sales", show_legend=False)
chart.x_labels = [row["month"] for row in rows]
chart.add("sales", [int(row["sales"]) for row in rows])
chart.render_to_file("chart.svg")
with open("index.html", "w") as page:
    page.write('<!doctype html><title>Sales</title><h1>Sales</h1><img src="chart.svg" alt="Chart">')
print("total:", sum(int(row["sales"]) for row in rows))
