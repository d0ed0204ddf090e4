import type { Knowledge } from './program-rules.ts';

/**
 * Programs that the sources start without naming them, and where they come from. Essential packages
 * are those that both Debian 12 and 13 mark `Essential: yes`: mount, e2fsprogs, procps, iproute2
 * and Python are not among them.
 */
export const knowledge: Knowledge = {
  declared: {
    '.ci/run': { places: ['a script'], starts: ['npm', 'bash'] },
    kubeling: { places: ['a script'], starts: ['find', 'readlink', 'sh'] },
    'scripts/setup/apt.mjs': { places: ['a script'], starts: ['apt-get', 'sh'] },
    'scripts/setup/kubectl.mjs': {
      places: ['cache', 'program'],
      starts: ['apt-cache', 'busybox', 'kubectl', 'npm', 'tar'],
    },
    'scripts/setup/lock.mjs': { places: ["'flock'"], starts: ['cat', 'sh'] },
    // npm-packages.mjs runs npm with the pinned Node.js.
    'scripts/setup/npm-packages.mjs': { places: ["join(pinned, 'bin/node')"], starts: ['npm'] },
    // task.mjs runs the commands of the other set-up scripts.
    'scripts/setup/task.mjs': { places: ['command'], starts: [] },
    'scripts/setup/units.mjs': { starts: ['update-rc.d'] },
    // wire-client-set.ts runs the credential plugin that a kubeconfig names.
    'src/api/client/wire-client-set.ts': { places: ['runChecked'], starts: [] },
    // real-machine.ts runs the programs whose versions the doctor checks report: containerd, runc,
    // iptables.
    'src/cli/doctor/real-machine.ts': { places: ['file'], starts: [] },
    'src/cli/doctor/checks/network.ts': {
      wrappers: ['machine.run'],
      places: ['iptables'],
      starts: ['iptables'],
    },
    'src/cli/doctor/checks/runtime.ts': { wrappers: ['machine.run'], places: ['path'], starts: ['runc'] },
    'src/cli/down.test.ts': { places: ["'/bin/sh'"], starts: ['sh'] },
    'src/cli/inherited-descriptors.test.ts': { places: ["'bash'"], starts: ['ls'] },
    // down.ts runs the programs that src/runtime/containers/subpaths.ts and
    // src/containerd/mounts.ts pass to it.
    'src/cli/down.ts': { places: ['file'], starts: [] },
    'src/cli/data-directory/firewall.ts': { places: ['file'], starts: [] },
    'src/node/host-firewall.ts': { starts: ['iptables', 'ip6tables'] },
    'src/cli/service/run-as-service.ts': { places: ["'flock'"], starts: [] },
    'src/cli/service/service-manager.ts': {
      places: ["{ ...command, args: ['--no-block', state] }", '{ ...command, args: [state] }'],
      starts: ['systemd-notify'],
    },
    'src/cli/run/kubelet-directories.ts': { places: ['file'], starts: [], wrappers: ['run'] },
    'src/cli/kubelet/volume-support.ts': { places: ["'unshare'"], starts: [] },
    'src/cli/kubelet/user-ids.ts': { places: ['command'], starts: ['getsubids'] },
    'src/containerd/launch.ts': { places: ['file'], starts: ['containerd'] },
    // machine.ts runs the programs of the other files in src/containerd, found on the PATH and
    // beside containerd.
    'src/containerd/machine.ts': {
      places: ['file'],
      starts: ['containerd', 'ctr', 'ip', 'iptables', 'runc'],
    },
    'src/containerd/mounts.ts': { starts: [], wrappers: ['run'] },
    // oci-image.test.ts contains a text that begins like a script and is never run.
    'src/containerd/oci-image.test.ts': { places: ['a script'], starts: [] },
    'src/lib/run-command.test.ts': {
      places: [
        "command('/etc/passwd', [])",
        "command('/no/such/program', [])",
        "command('/no/such/program', [])",
        'command(process.execPath, args)',
        "script('', { input: Buffer.alloc(1_000_000) })",
        'script(\'console.error("it broke"); process.exit(1)\')',
        'script(\'console.log("12345")\', { maxOutputBytes: 3 })',
        'script(\'console.log("fine")\')',
        'script(\'console.log("out"); console.error("err"); process.exit(3)\')',
        'script(\'process.kill(process.pid, "SIGKILL")\')',
        'script(\'process.stdout.write("x".repeat(100000))\', { maxOutputBytes: 10 })',
        'script(text)',
        'script(text)',
        'script(text, { clock: time, deadlineMs: 1500 })',
        "script(text, { input: 'in:', env: { A: 'a:' } })",
      ],
      starts: ['sleep'],
    },
    'src/lib/run-command.ts': { places: ['command', 'command.file'], starts: [] },
    // exec-plugin.ts runs the credential plugins that the configuration names.
    'src/runtime/images/credentials/exec-plugin.ts': { places: ['command'], starts: [] },
    'src/runtime/containers/subpaths.ts': { places: ['file'], starts: [], wrappers: ['run'] },
    'src/server/system-logs/journal.ts': {
      places: ['program', '{ ...command, ...limits }'],
      starts: ['journalctl'],
    },
    // run-group-walk.ts runs a script with the running Node.js, so it starts no other program.
    'src/volumes/ownership/run-group-walk.ts': { places: ['command'], starts: [] },
    'src/node/shutdown/logind.ts': { starts: ['cat', 'sh'] },
    'src/volumes/block/host-block-devices.ts': { places: ['file'], starts: [], wrappers: ['.#run'] },
    'src/volumes/emptydir/host-directory-quotas.ts': {
      places: ['file', 'file'],
      starts: [],
      wrappers: ['.#run', '.#command'],
    },
    'src/volumes/local/host-disks.ts': {
      places: ['file', 'file', 'program'],
      starts: ['mkfs.ext4', 'mkfs.xfs', 'resize2fs', 'xfs_growfs'],
      wrappers: ['.#run'],
    },
    'src/volumes/nfs/host-network-mounts.ts': { places: ['command'], starts: [], wrappers: ['.#run'] },
    'src/volumes/files/host-volume-files.ts': { places: ['file'], starts: [], wrappers: ['.#run'] },
    // programs.test.ts contains a sample script.
    'test/architecture/programs.test.ts': { places: ['a script'], starts: [] },
    'test/booted-machine.ts': {
      places: ["'nsenter'", "'nsenter'", "'unshare'"],
      starts: ['ip', 'mount', 'sh', 'sleep'],
    },
    'test/chaos/fragile-containerd.ts': { places: ['a script'], starts: ['containerd', 'sed', 'sh'] },
    'test/cluster/cluster-node.ts': { places: ["'setpriv'", 'file'], starts: [] },
    // control-plane.ts runs kubectl, directly or in a terminal.
    'test/cluster/control-plane.ts': { places: ["'setpriv'"], starts: ['kubectl'] },
    // part.ts runs control plane components, which are built from source where the cluster tests
    // run.
    'test/cluster/part.ts': { places: ["'setpriv'"], starts: [] },
    'test/cluster/programs.ts': { places: ['etcd'], starts: [] },
    'test/cluster/terminal.ts': { places: ['command'], starts: ['script', 'stty'] },
    // connection-attempt.ts runs a script with the running Node.js in a network namespace.
    'test/connection-attempt.ts': { places: ['file'], starts: [] },
    'test/isolated-network.ts': { places: ['file'], starts: ['ip', 'sh'] },
    'test/disks/loop-disk.ts': {
      places: ['`mkfs.${type}`', 'file'],
      starts: ['mkfs.ext4', 'mkfs.xfs'],
      wrappers: ['run'],
    },
    // quota-tools.ts contains the scripts of fake quota programs.
    'test/disks/quota-tools.ts': { places: ['a script'], starts: ['cat', 'ls', 'rm', 'sh', 'tr'] },
    // argument-recorder.ts contains a script that replaces any program and records its arguments.
    'test/fakes/argument-recorder.ts': { places: ['a script'], starts: ['sh'] },
    'test/fresh/enter.sh': {
      places: ['a script'],
      starts: ['grep', 'hostname', 'mkdir', 'mount', 'pivot_root', 'rmdir', 'sh', 'umount'],
    },
    'test/fresh/fresh-machine.ts': { places: ["'/bin/sh'"], starts: ['env', 'unshare'] },
    'test/fresh/inside.mjs': { places: ['file', 'file'], starts: ['dpkg-query', 'git', 'npm'] },
    'test/integration/containerd-access.test.ts': { places: ["'setpriv'"], starts: ['test'] },
    'test/integration/containerd-fixture.ts': { places: ['beside'], starts: ['ctr'] },
    // hostile-volumes.test.ts has a list of programs with their arguments, and runs each of them.
    'test/integration/hostile-volumes.test.ts': {
      places: ['program'],
      starts: ['blkid', 'lsattr', 'mkfs.ext4', 'resize2fs', 'stat'],
    },
    // containerd.test.ts contains the scripts of fake containerds.
    'test/integration/containerd.test.ts': {
      places: ["'/bin/sh'", 'a script', 'program'],
      starts: ['sh', 'sleep'],
    },
    'test/integration/directory-quotas.test.ts': { places: ['file'], starts: ['mkfs.ext4', 'mkfs.xfs'] },
    'test/integration/group-walk.test.ts': { places: ["'bash'"], starts: ['find', 'wc'] },
    'test/integration/host-firewall.test.ts': {
      places: ['...inside', '...inside', '...inside', 'file'],
      starts: ['ip', 'iptables'],
      wrappers: ['said'],
    },
    // listeners.test.ts runs kubeling and ip in a network namespace.
    'test/integration/listeners.test.ts': { places: ['file', 'file'], starts: ['ip', 'setpriv'] },
    'test/listeners/find-listeners.ts': { places: ['file'], starts: ['ss'] },
    // loopback-services.test.ts runs a script with the running Node.js in a network namespace, and
    // an iptables wrapper that records its calls.
    'test/integration/loopback-services.test.ts': {
      places: ['a script', 'file', 'file'],
      starts: ['ip', 'iptables', 'sh'],
    },
    // images.test.ts contains the script of a fake credential plugin.
    'test/integration/images.test.ts': { places: ['a script'], starts: ['cat', 'sh'] },
    'test/integration/launcher.test.ts': { places: ["'/bin/sh'", 'a script'], starts: ['readlink'] },
    'test/integration/logs.test.ts': { places: ["'bash'", 'kubeling'], starts: ['head'] },
    'test/integration/pause-program.test.ts': { places: ["'nsenter'", "'unshare'"], starts: ['sh', 'sleep'] },
    // pod-config.test.ts contains the script of a fake crun.
    'test/integration/pod-config.test.ts': { places: ['a script'], starts: ['runc', 'sh'] },
    'test/integration/process.test.ts': { places: ['launcher', 'launcher', 'launcher'], starts: [] },
    'test/integration/remove-tree.test.ts': { places: ["'sh'", "'sh'"], starts: ['mkdir', 'touch'] },
    'test/integration/run-standalone.test.ts': { places: ["'setpriv'"], starts: [] },
    'test/integration/runtime-choice.test.ts': {
      starts: [],
      wrappers: ['machine.run', 'machine.start'],
    },
    'test/integration/service.test.ts': {
      places: ["'setpriv'", "'setpriv'"],
      starts: ['flock', 'python3', 'sleep'],
    },
    'test/integration/setup.test.ts': {
      places: ['a script'],
      starts: ['cat', 'chmod', 'cp', 'gzip', 'ln', 'mkdir', 'rm', 'seq', 'sh', 'sleep', 'tar'],
    },
    'test/integration/shared-root.test.ts': { places: ["'unshare'", 'file'], starts: ['nsenter', 'sleep'] },
    // The script in streaming.test.ts runs in a container; `starts` lists the programs that the
    // test starts outside of it.
    'test/integration/streaming.test.ts': {
      places: ['a script', 'program'],
      starts: ['bash', 'head', 'kubectl', 'script', 'sh', 'yes'],
    },
    // system-logs.test.ts contains the scripts of fake journalctls.
    'test/integration/system-logs.test.ts': { places: ['a script'], starts: ['sh'] },
    'test/integration/up-down.test.ts': { places: ['kubeling', 'kubeling'], starts: [] },
    'test/kubeling-node.ts': { places: ['file', 'file', 'file'], starts: [] },
    'test/local-api/local-cluster.ts': { places: ['file'], starts: ['kubectl', 'script'] },
    'test/local-api/up.test.ts': { places: ['file'], starts: ['kubectl'] },
    'test/local-api/volume-content.test.ts': { places: ["'sh'"], starts: ['find', 'grep', 'xargs'] },
    'test/logind/bus.ts': {
      places: ["'setpriv'", "'sh'"],
      starts: ['dbus-daemon', 'systemd-inhibit'],
    },
    'test/nfs/fake-nfs.ts': { places: ['a script'], starts: ['sh'] },
    'test/private-runtime.ts': { places: ["'sh'", 'a script'], starts: ['containerd'] },
    'test/secrets/cluster-secrets.test.ts': { places: ['a script'], starts: ['cat', 'sh'] },
  },
  essential: {
    bash: ['bash'],
    bsdutils: ['script'],
    coreutils: [
      ...['cat', 'chmod', 'cp', 'dd', 'du', 'env', 'head', 'ln', 'ls', 'mkdir', 'mkfifo', 'mknod'],
      ...[
        'readlink',
        'rm',
        'rmdir',
        'seq',
        'sleep',
        'stat',
        'stty',
        'test',
        'touch',
        'tr',
        'truncate',
        'wc',
        'yes',
      ],
    ],
    dash: ['sh'],
    dpkg: ['dpkg-query'],
    findutils: ['find', 'xargs'],
    grep: ['grep'],
    gzip: ['gzip'],
    hostname: ['hostname'],
    'init-system-helpers': ['update-rc.d'],
    sed: ['sed'],
    tar: ['tar'],
    'util-linux': [
      ...['blkid', 'blockdev', 'findmnt', 'flock', 'fsck', 'nsenter', 'pivot_root', 'prlimit', 'setpriv'],
      ...['unshare'],
    ],
  },
  alongside: {
    containerd: ['ctr'],
    iproute2: ['ss'],
    iptables: ['ip6tables'],
    mount: ['losetup'],
    systemd: ['journalctl'],
  },
  given: {
    'apt-cache': 'belongs to apt, without which the set-up only names the packages',
    'apt-get': 'belongs to apt, without which the set-up only names the packages',
    getsubids:
      'reads ranges of user IDs where the administrator has installed it; the default ranges do without',
    git: 'the README asks for it',
    kubectl: 'scripts/setup/kubectl.mjs installs it',
    npm: 'the README asks for it',
    promtool: 'its package brings 316 MiB on Debian 12, so the test that runs it is skipped',
  },
  optional: {
    chattr: 'limits the size of emptyDir volumes by project quotas',
    journalctl: 'reads the logs of services on a machine with systemd',
    lsattr: 'limits the size of emptyDir volumes by project quotas',
    'mkfs.ext4': 'formats empty disks that pods use as ext4 volumes',
    'mkfs.xfs': 'formats empty disks that pods use as XFS volumes',
    repquota: 'limits the size of emptyDir volumes by project quotas',
    resize2fs: 'grows ext4 volumes',
    setquota: 'limits the size of emptyDir volumes by project quotas',
    'systemd-inhibit': 'delays the shutdown of a machine with systemd',
    'systemd-notify': 'tells systemd, whose service kubeling then is, that it is ready',
    xfs_growfs: 'grows XFS volumes',
  },
  indirect: {
    bridge: 'containerd runs the CNI plugins',
    'libatomic.so.1': 'the pinned Node.js is linked to it',
    'libfaketime.so.1': 'test/local-api/failures.test.ts preloads it',
  },
};
