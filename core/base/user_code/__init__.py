"""The user's code, which gradtape only reads: its lines, and what it does with tensors' values.

From the bottom up, :mod:`.frames` finds the lines that run. :mod:`.instructions` reads what they
call and write into, :mod:`.targets` the arrays that they write into, and :mod:`.uses` what becomes
of a value. :mod:`.sites` describes reads of tensors' values. :mod:`.written_arrays` has the errors
for tensors in NumPy arrays, and :mod:`.numpy_warnings` shows NumPy's warnings at the user's lines.
"""

from .frames import Place as Place
from .frames import computes_with_arrays as computes_with_arrays
from .frames import count_as_library as count_as_library
from .frames import is_users_call as is_users_call
from .frames import line_of as line_of
from .frames import locals_of as locals_of
from .frames import package_of as package_of
from .frames import reader as reader
from .frames import user_line as user_line
from .frames import users_frame as users_frame
from .frames import warn_user as warn_user
from .numpy_warnings import show_at_users_lines as show_at_users_lines
from .sites import Site as Site
from .sites import site_of as site_of
from .targets import memory_of as memory_of
from .targets import target_of as target_of
from .uses import unread_argument as unread_argument
from .written_arrays import how_to_write_argument as how_to_write_argument
from .written_arrays import in_place_operator as in_place_operator
from .written_arrays import name_assigned_to as name_assigned_to
from .written_arrays import not_known as not_known
from .written_arrays import raise_hidden as raise_hidden
from .written_arrays import refuse_to_assign as refuse_to_assign
from .written_arrays import running_call as running_call
