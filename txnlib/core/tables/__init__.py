"""Tables that grow with the cluster, made of typed rows. A function has the name of its table, and mostly its module, too."""
