"""Sessions in the own formats of agents, with a boundary of ours: what the agent reads when it goes on."""
