"""The backend of the local machine: C++ for its cores, their vectors and their caches."""
