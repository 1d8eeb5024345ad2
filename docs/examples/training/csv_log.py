"""Write what each epoch measured as a row of a CSV file, and read such a file as data."""

import csv

import gradtape as gt

gt.random.set_seed(0)
(x, y), test = gt.datasets.load_digits()
log = gt.training.CSVLogger("training.csv")
gt.training.fit(
    gt.layers.Dense(10),
    (x, y),
    epochs=3,
    validation_data=test,
    callbacks=[log],
    seed=0,
    verbose=False,
)
with open("training.csv", encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
for row in rows:
    print(row["epoch"], row["val_accuracy"])
assert [row["epoch"] for row in rows] == ["0", "1", "2"]
assert float(rows[-1]["val_loss"]) < float(rows[0]["val_loss"])
