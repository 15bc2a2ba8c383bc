"""Where the commands of runs are executed: policy, backends, the pool of warm ones."""
