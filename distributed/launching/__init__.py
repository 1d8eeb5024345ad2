"""``gradtape train``: running a script on each rank of a job that a launcher started."""
