"""The backend of the local CPU: C++ for its cores, vectors and caches."""
