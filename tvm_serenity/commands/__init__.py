"""The functions behind the commands: each in a file of its name.

    from tvm_serenity.commands.schedule import schedule
    from tvm_serenity.commands.schedule_options import ScheduleOptions

    result = schedule("model.tflite", ScheduleOptions(output="ordered.tflite"))

A function takes the arguments of its command and a dataclass of options (``tvm_serenity.options``),
and returns a result with the method ``json``. ``cli`` parses the options and prints the result.
"""
