"""A convolutional network on images of 8 by 8 pixels."""

import gradtape as gt

gt.random.set_seed(0)
(x, y), (x_test, y_test) = gt.datasets.load_digits()
images, test_images = x.reshape(-1, 8, 8, 1), x_test.reshape(-1, 8, 8, 1)
layers = gt.layers
model = layers.Sequential(
    [
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.2),
        layers.Dense(10),
    ]
)
optimizer = gt.training.Adam(0.01)
gt.training.fit(model, (images, y), epochs=8, optimizer=optimizer, seed=0, verbose=False)
print(model.summary())
accuracy = gt.training.evaluate(model, (test_images, y_test))["accuracy"]
print(f"accuracy: {accuracy:.1%}")
assert accuracy > 0.94
