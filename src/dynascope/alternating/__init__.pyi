from .flow import alternating_flow as alternating_flow
from .next_neuron import NextActivation as NextActivation
from .next_neuron import predict_next_activation as predict_next_activation
from .optimizer import active_set_descent as active_set_descent
from .phase_rules import PhaseRules as PhaseRules
