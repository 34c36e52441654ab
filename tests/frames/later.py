"""Runs a program as soon as a file exists, so that it can be attached to before. Creates the file "ready" at first.

usage: later.py FILE PROGRAM [ARGUMENT]...
"""
import os
import runpy
import sys
import time

open('ready', 'w').close()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name='__main__')
