from .levels import AttentionModes as AttentionModes
from .levels import attention_levels as attention_levels
from .levels import attention_modes as attention_modes
from .levels import attention_utility as attention_utility
from .linear_attention import linear_attention_staircase as linear_attention_staircase
from .merged_attention import merged_attention_staircase as merged_attention_staircase
