"""What each command does: a function of its name, in a file of its name.

    from tvm_serenity.commands.schedule import schedule
    from tvm_serenity.commands.schedule_options import ScheduleOptions

    found = schedule("model.tflite", ScheduleOptions(output="ordered.tflite"))

A function takes what the command line takes, a dataclass of options (``tvm_serenity.options``), and
returns what it found. ``cli`` parses the options and prints the result.
"""
