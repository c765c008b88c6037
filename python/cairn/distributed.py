"""One process trains a model. Questions have their honest answers; what needs several processes is an error."""

__all__ = ["barrier", "destroy_process_group", "get_rank", "get_world_size", "init_process_group", "is_available",
           "is_initialized"]


def is_available():
    return False


def is_initialized():
    return False


is_torchelastic_launched = is_nccl_available = is_gloo_available = is_mpi_available = is_initialized


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"cairn.distributed.{name} is not there: a model is trained by one process, which "
                                  "uses all cores, or one GPU")

    return refuse


init_process_group = _refuse("init_process_group")
all_reduce = _refuse("all_reduce")
all_gather = _refuse("all_gather")
broadcast = _refuse("broadcast")
barrier = _refuse("barrier")
get_rank = _refuse("get_rank")
get_world_size = _refuse("get_world_size")


def destroy_process_group(group=None):
    """There is no group."""
