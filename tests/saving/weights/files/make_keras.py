"""Write this folder's files of Keras, with what Keras predicts. Needs keras and a backend of it."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np

FOLDER = Path(__file__).parent
X = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")


class Net(keras.Model):
    """Attributes before and after "layers" in the alphabet, a list, a model in it, a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = keras.layers.Dense(4, activation="relu")
        self.norm = keras.layers.BatchNormalization(scale=False)
        self.blocks = [keras.layers.Dense(3), keras.layers.Dense(4)]
        self.inner = keras.Sequential([keras.layers.Dense(2)])
        self.tail = keras.layers.Dense(2)
        self.factor = self.add_weight(shape=(2,), name="factor", initializer="ones")

    def call(self, x, training=False):
        y = self.norm(self.hidden(x), training=training)
        for block in self.blocks:
            y = block(y)
        return self.tail(self.inner(y)) * self.factor


def sequential(head: str = "head") -> keras.Model:
    return keras.Sequential(
        [
            keras.layers.Dense(4, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(3, name=head),
            keras.layers.Dense(2),
        ]
    )


def functional() -> keras.Model:
    inputs = keras.Input((5,))
    left = keras.layers.Dense(4, name="left")(inputs)
    right = keras.layers.Dense(4)(inputs)
    both = keras.layers.Concatenate()([left, right])
    return keras.Model(inputs, keras.layers.Dense(2)(both))


def trained(model: keras.Model) -> keras.Model:
    model(X)
    model.compile(optimizer="adam", loss="mse")
    model.fit(X, np.ones((6, 2)), epochs=2, verbose=0)
    return model


def main() -> None:
    keras.utils.set_random_seed(0)
    predictions = {"x": X}

    def save(name: str, model: keras.Model, whole: bool = False) -> None:
        if whole:
            model.save(FOLDER / name)
        else:
            model.save_weights(FOLDER / name)
        predictions[name] = np.asarray(model(X))

    save("sequential.weights.h5", trained(sequential()))
    save("sequential.keras", trained(sequential()), whole=True)
    save("sequential.h5", trained(sequential()), whole=True)
    save("functional.weights.h5", functional())
    net = Net()
    net(X)
    net.factor.assign([2.0, -1.0])
    net.norm.moving_mean.assign([0.5, -0.5, 0.25, 0.0])
    save("subclass.weights.h5", net)
    save(
        "bfloat16.weights.h5",
        keras.Sequential([keras.Input((5,)), keras.layers.Dense(3, dtype="bfloat16")]),
    )
    predictions["bfloat16.weights.h5"] = predictions["bfloat16.weights.h5"].astype("float32")
    np.savez(FOLDER / "keras_predictions.npz", **predictions)


if __name__ == "__main__":
    main()
