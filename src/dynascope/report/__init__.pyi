from .page import render_page as render_page
from .page import write_page as write_page
