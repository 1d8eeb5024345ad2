"""What to use instead of a name that does not exist here, a line for each.

A line begins with a full name, with a namespace and ``*`` for all its missing names, or with the
last part of a name in any namespace.
"""

from __future__ import annotations

_LINES = """
Example: h5py or NumPy's files
Ftrl: Adagrad
Graph: gradtape.function(f).get_concrete_function(...).graph
IndexedSlices: tensors: all gradients are dense here
Lambda: tf.keras.layers.Activation, which takes any function of a tensor
RaggedTensor: tf.data.Dataset.padded_batch, or tf.keras.utils.pad_sequences
RemoteMonitor: tf.keras.callbacks.LambdaCallback
Session: eager code: ops run when they are called
bfloat16: float32, or tf.keras.mixed_precision, because NumPy has no bfloat16
clone_model: copy.deepcopy(model), which keeps the weights
crop_and_resize: crop_to_bounding_box and resize
datasets: gradtape.datasets, or arrays that you read
div: tf.divide
executing_eagerly_outside_functions: tf.executing_eagerly
experimental: the name in tf.keras itself
get_variable: tf.Variable
global_variables_initializer: eager code: variables have their values
gradients: gradtape.GradientTape, or gradtape.grad
hessians: gradtape.hessian
list_files: glob.glob(pattern), in a function for tf.data.Dataset.from_generator
mul: tf.multiply
neg: tf.negative
non_max_suppression: NumPy, because it has no gradient
placeholder: arguments of a gradtape.function
saving: Model.save and tf.keras.models.load_model; classes need no registration
sub: tf.subtract
tf.app: argparse
tf.autograph.*: tf.cond and tf.while_loop
tf.compat: tf.* itself, which has the names of TensorFlow 2 and runs eagerly
tf.config.*: nothing: options that tune TensorFlow's runtime have no effect here
tf.contrib: tf.keras, or the library that replaced the part of tf.contrib
tf.data.TFRecordDataset: tf.data.Dataset.from_generator, from_hdf5 or from_csv
tf.data.TextLineDataset: tf.data.Dataset.from_generator, with numbers as elements
tf.data.experimental.*: methods of tf.data.Dataset, such as from_csv
tf.debugging.set_log_device_placement: Tensor.device
tf.distribute: gradtape.distributed and fit(distributed=group)
tf.estimator: tf.keras.Model.fit
tf.feature_column: tf.keras.layers on arrays
tf.flags: argparse
tf.image.*: PIL, NumPy and tf.constant(np.asarray(image)) to read and write files
tf.io.decode_image: PIL, and tf.constant(np.asarray(image))
tf.io.decode_jpeg: PIL, and tf.constant(np.asarray(image))
tf.io.decode_png: PIL, and tf.constant(np.asarray(image))
tf.io.gfile: pathlib and open
tf.io.*: Python's open, NumPy or h5py; gradtape.save and gradtape.load for models
tf.keras.applications: tf.keras.layers and gradtape.load_weights, which reads Keras files
tf.keras.backend.function: tf.keras.Model(inputs, outputs)
tf.keras.backend.learning_phase: training=True or False in calls
tf.keras.backend.placeholder: tf.keras.Input
tf.keras.estimator: gradtape.sklearn
tf.keras.preprocessing: tf.keras.utils.pad_sequences, tf.image, and NumPy
tf.keras.utils.get_file: urllib.request.urlretrieve to download the file
tf.keras.utils.load_img: PIL.Image.open(path)
tf.keras.utils.*: tf.data.Dataset.from_generator for data, or NumPy
tf.linalg.LinearOperator: dense matrices
tf.lookup: a Python dictionary, before you create tensors
tf.ragged: tf.data.Dataset.padded_batch, or tf.keras.utils.pad_sequences
tf.raw_ops: tf.* itself, which has the ops by their public names
tf.sparse.*: tf.sparse.to_dense and dense ops
tf.strings.regex_replace: re.sub
tf.strings.*: Python's str methods before you create tensors, which hold numbers
tf.summary.*: gradtape.profile, or tf.summary.scalar
tf.sysconfig.*: gradtape doctor on the command line
tf.test.*: unittest or pytest
tf.train.Saver: tf.train.Checkpoint
tf.train.*: tf.keras.optimizers, or h5py for records
to_double: tf.cast(x, tf.float64)
to_float: tf.cast(x, tf.float32)
to_int32: tf.cast(x, tf.int32)
to_int64: tf.cast(x, tf.int64)
"""
INSTEAD: dict[str, str] = {
    name: words for name, _, words in (x.partition(": ") for x in _LINES.strip().split("\n"))
}
