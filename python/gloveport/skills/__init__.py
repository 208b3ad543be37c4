"""AgentSkills: functions that an agent finds in its notebook without an import.

==============  ===================================================================
module          idea
==============  ===================================================================
``navigation``  looks into text files through a window, and searches them
``readers``     prints the text of documents
``media``       has sounds and pictures described by a model
``editor``      edits files with the editor of the sandbox's server
==============  ===================================================================

The functions of ``media`` are there only if a key of the service is in the environment when this is imported.
"""

from gloveport.skills import media
from gloveport.skills.editor import file_editor
from gloveport.skills.navigation import (
    find_file,
    goto_line,
    open_file,
    scroll_down,
    scroll_up,
    search_dir,
    search_file,
)
from gloveport.skills.readers import parse_docx, parse_latex, parse_pdf, parse_pptx

__all__ = [
    "open_file",
    "goto_line",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "find_file",
    "parse_pdf",
    "parse_docx",
    "parse_latex",
    "parse_pptx",
    "file_editor",
]

if media.is_configured():
    from gloveport.skills.media import parse_audio, parse_image, parse_video

    __all__ += ["parse_audio", "parse_image", "parse_video"]
