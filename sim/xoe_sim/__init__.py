"""How xoe is built for simulation and run."""
