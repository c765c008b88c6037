"""torch.hub downloads programs and runs them; here that is left to you."""

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]


def _refuse(name, instead):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"cairn.hub.{name} is not there: {instead}")

    return refuse


load = _refuse("load", "download the model's file yourself, build the model in Python, and cairn.load the file")
list = _refuse("list", "look at the repository of the model")
help = _refuse("help", "look at the repository of the model")
load_state_dict_from_url = _refuse("load_state_dict_from_url", "download the file, then cairn.load it")
download_url_to_file = _refuse("download_url_to_file", "urllib.request.urlretrieve(url, path) does it")


def get_dir():
    import os

    return os.environ.get("CAIRN_HOME", os.path.join(os.path.expanduser("~"), ".cache", "cairn", "hub"))


def set_dir(d):
    import os

    os.environ["CAIRN_HOME"] = d
