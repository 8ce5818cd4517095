// tests/package/shipping/no-library.cpp: no name for an identifier, and nothing of the library.
int twice(int x) { return 2 * x; }
