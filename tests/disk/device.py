"""A block device that logs its writes and flushes, and the images that a power loss leaves of it.

The device is a loop device on a file in FUSE. The kernel's FUSE protocol is spoken here directly: one file needs few of
its operations, and no library. The loop device turns each flush of the file system (and each FUA write) into an fsync
of that file, and opens it with direct I/O, so writes arrive here as the file system issued them.

The log is two files: `index` has a fixed-size entry for each write and each completed flush, `bytes` has what was
written. A position in the log is a number of entries.
"""

import bisect
import contextlib
import ctypes
import errno
import mmap
import os
import random
import signal
import stat
import struct
import subprocess
import time

SECTOR = 512
ENTRY = struct.Struct("<QQQ")  # offset on the disk, length, offset in `bytes`
FLUSH = 2**64 - 1  # the offset of an entry that is a flush

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_IO_FLUSHER = 1, 57


def call(function, *arguments):
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function.__name__}: {os.strerror(number)}")


shared_mounts = None


def own_mounts():
    """Gives this process mounts of its own: nobody else sees them, and they end with it even if it is killed."""
    global shared_mounts
    shared_mounts = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    call(libc.unshare, CLONE_NEWNS)
    call(libc.mount, b"none", b"/", None, MS_REC | MS_PRIVATE, None)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def read_messages(messages, device):
    """What the kernel has said about a device, and closes the file."""
    said = []
    with contextlib.suppress(BlockingIOError):
        while True:
            # A message that was overwritten before it could be read is EPIPE.
            with contextlib.suppress(BrokenPipeError):
                said.append(os.read(messages, 8192).decode(errors="replace"))
    os.close(messages)
    return "\n".join(line for line in said if f"({device})" in line)


def detach_all(directory):
    """Detaches loop devices of files in a directory, after an interruption while they were set up."""
    for line in run("losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE").splitlines():
        name, _, file = line.partition(" ")
        if file.startswith(directory):
            run("losetup", "--detach", name)


class Mounted:
    """The file system on an image or a disk, mounted with its default options."""

    def __init__(self, kind, file, directory, direct_io="off"):
        self.directory = directory
        messages = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(messages, 0, os.SEEK_END)
        device = run("losetup", "--find", "--show", f"--direct-io={direct_io}", f"--sector-size={SECTOR}", file)
        try:
            run("mount", "-t", kind, device, directory)
        finally:
            # While it is mounted, this takes effect when it no longer is.
            run("losetup", "--detach", device)
            said = read_messages(messages, os.path.basename(device))
        self.replayed = "recovery complete" in said or "Ending recovery" in said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50):
            if subprocess.run(["umount", self.directory], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        run("umount", "--lazy", self.directory)


class Disk:
    """The file `path`, with the content of `image`, while its writes and flushes are logged in `directory`."""

    def __init__(self, path, image, directory):
        self.path, self.index = path, os.path.join(directory, "index")
        open(path, "w").close()
        fuse = os.open("/dev/fuse", os.O_RDWR)
        # The root of this file system is not a directory but the file itself.
        options = f"fd={fuse},rootmode={stat.S_IFREG:o},user_id=0,group_id=0"
        call(libc.mount, b"disk", path.encode(), b"fuse", 0, options.encode())
        self.server = os.fork()
        if self.server == 0:
            code = 1
            try:
                # Ctrl-C is for the parent, which unmounts before this ends.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                die_with_parent()
                # If all are killed, the last one with these mounts unmounts the file system, and would wait for itself.
                call(libc.setns, shared_mounts, CLONE_NEWNS)
                # Memory is not reclaimed for this process by writing to the disk that it serves.
                libc.prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0)
                serve(fuse, image, directory)
                code = 0
            finally:
                os._exit(code)
        os.close(fuse)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(50):
            if subprocess.run(["umount", self.path], capture_output=True).returncode == 0:
                break
            # A loop device is detached a little after its file system is unmounted.
            time.sleep(0.1)
        else:
            run("umount", "--lazy", self.path)
            os.kill(self.server, signal.SIGKILL)
        os.waitpid(self.server, 0)

    def position(self):
        """The position in the log. What was flushed before this was called is before it."""
        return os.stat(self.index).st_size // ENTRY.size


def serve(fuse, image, directory):
    """Answers the kernel until the file is unmounted, one request at a time."""
    GETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH_FILE, INIT = 3, 14, 15, 16, 18, 20, 25, 26
    FORGET, INTERRUPT, BATCH_FORGET = 2, 36, 42
    ASYNC_READ, BIG_WRITES, MAX_PAGES = 1 << 0, 1 << 5, 1 << 22
    WRITE_MAX = 1 << 20

    disk = os.open(image, os.O_RDWR)
    size = os.fstat(disk).st_size
    create = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    index = os.open(os.path.join(directory, "index"), create)
    written = os.open(os.path.join(directory, "bytes"), create)
    length = 0

    def answer(operation, body):
        nonlocal length
        if operation == INIT:
            _, minor, readahead, _ = struct.unpack_from("<IIII", body)
            flags = ASYNC_READ | BIG_WRITES | MAX_PAGES
            return struct.pack("<IIIIHHIIHH8I", 7, min(minor, 31), readahead, flags, 16, 12, WRITE_MAX, 1,
                               WRITE_MAX // mmap.PAGESIZE, 0, *[0] * 8)
        if operation == GETATTR:
            return struct.pack("<QII6Q10I", 3600, 0, 0, 1, size, size // SECTOR, 0, 0, 0, 0, 0, 0,
                               stat.S_IFREG | 0o600, 1, 0, 0, 0, 4096, 0)
        if operation == OPEN:
            return struct.pack("<QII", 0, 0, 0)
        if operation == READ:
            offset, count = struct.unpack_from("<8xQI", body)
            return os.pread(disk, count, offset)
        if operation == WRITE:
            offset, count = struct.unpack_from("<8xQI", body)
            data = body[40:40 + count]
            os.pwrite(disk, data, offset)
            os.write(written, data)
            os.write(index, ENTRY.pack(offset, count, length))
            length += count
            return struct.pack("<II", count, 0)
        if operation == FSYNC:
            # A flush takes its time. Whoever acknowledges without waiting for it does so before it is in the log.
            time.sleep(0.001)
            os.write(index, ENTRY.pack(FLUSH, 0, length))
            return b""
        if operation in (RELEASE, FLUSH_FILE):
            return b""
        # Discards too: the kernel then does without them, and writes zeros where it needs them.
        raise OSError(errno.ENOSYS, "not supported")

    while True:
        try:
            request = os.read(fuse, WRITE_MAX + mmap.PAGESIZE)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                continue
            if error.errno == errno.ENODEV:
                return
            raise
        _, operation, unique = struct.unpack_from("<IIQ", request)
        if operation in (FORGET, INTERRUPT, BATCH_FORGET):
            continue
        failed, out = 0, b""
        try:
            out = answer(operation, memoryview(request)[40:])
        except OSError as error:
            failed = -(error.errno or errno.EIO)
        os.writev(fuse, [struct.pack("<IiQ", 16 + len(out), failed, unique), out])


class Log:
    """The log of a disk, to read."""

    def __init__(self, directory):
        with open(os.path.join(directory, "index"), "rb") as file:
            self.entries = list(ENTRY.iter_unpack(file.read()))
        with open(os.path.join(directory, "bytes"), "rb") as file:
            self.bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.flushes = [at for at, entry in enumerate(self.entries) if entry[0] == FLUSH]

    def pieces(self, begin, end):
        """The writes between two positions: where each belongs and its bytes."""
        for offset, length, at in self.entries[begin:end]:
            if offset != FLUSH:
                yield offset, self.bytes[at:at + length]


class Loss:
    """A power loss, all of it chosen by its seed: when it happens, and which unflushed writes survive it.

    With `lies`, the disk acknowledged its last flushes without performing them, and nothing after that survives.
    """

    def __init__(self, seed, log, acknowledged, lies=False):
        self.seed, choice = seed, random.Random(seed)
        first = min(acknowledged)
        when = "acknowledged" if lies else choice.choice(("any", "flush", "flush", "acknowledged", "start"))
        self.point = {
            "any": lambda: choice.randint(0, len(log.entries)),
            # As much as possible is in the cache of the disk.
            "flush": lambda: choice.choice(log.flushes),
            "acknowledged": lambda: choice.choice(acknowledged),
            # While the file system is mounted and the service starts, which repairs what an earlier loss has left.
            "start": lambda: choice.randint(0, first),
        }[when]()
        flushed = bisect.bisect_left(log.flushes, self.point)
        if lies:
            flushed -= choice.randint(1, 8)
        self.flushed = log.flushes[flushed - 1] + 1 if flushed > 0 else 0
        self.kept = 0 if lies else choice.choice((0, 0.1, 0.5, 0.9, 0.99))
        self.in_order, self.whole = choice.random() < 0.5, choice.random() < 0.5
        self.choice = choice

    def survivors(self, log):
        """The unflushed writes that survive, and how many sectors do not."""
        survivors, lost = [], 0
        for offset, data in log.pieces(self.flushed, self.point):
            if self.whole:
                if self.choice.random() < self.kept:
                    survivors.append((offset, data))
                else:
                    lost += len(data) // SECTOR
                continue
            for at in range(0, len(data), SECTOR):
                if self.choice.random() < self.kept:
                    survivors.append((offset + at, data[at:at + SECTOR]))
                else:
                    lost += 1
        if not self.in_order:
            self.choice.shuffle(survivors)
        return survivors, lost


class Images:
    """Makes the images that power losses leave, in the order of what was flushed before them."""

    def __init__(self, log, base, directory):
        self.log, self.position = log, 0
        self.flushed = os.path.join(directory, "flushed.img")
        copy(base, self.flushed)

    def make(self, loss, image):
        """Makes the image of a loss, and returns how many sectors it lost."""
        with open(self.flushed, "r+b", buffering=0) as file:
            for offset, data in self.log.pieces(self.position, loss.flushed):
                os.pwrite(file.fileno(), data, offset)
        self.position = loss.flushed
        copy(self.flushed, image)
        survivors, lost = loss.survivors(self.log)
        with open(image, "r+b", buffering=0) as file:
            for offset, data in survivors:
                os.pwrite(file.fileno(), data, offset)
        return lost


def copy(source, target):
    """Copies an image without its holes."""
    run("cp", "--sparse=always", source, target)


def make_file_system(kind, image, size):
    """An empty file system. Its size is that of a sparse file, of which little is used."""
    with open(image, "wb") as file:
        file.truncate(size)
    # Inode tables are not initialised later, in the background, which would fill the log.
    options = {"ext4": ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], "xfs": ["-q", "-f"]}[kind]
    run(f"mkfs.{kind}", *options, image)
    run("fallocate", "--dig-holes", image)
