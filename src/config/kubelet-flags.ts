import {
  boolFlag,
  choiceFlag,
  durationFlag,
  type Flag,
  type FlagKind,
  type FlagTable,
  flagError,
  intFlag,
  listFlag,
  mapFlag,
  stringFlag,
} from '../lib/index.ts';

/** Flags that do not set a field of the configuration, but belong to the node or to this run. */

const thisRun = 'This run';
const node = 'This node';
const useEviction = 'set eviction thresholds instead';
const fromCadvisor = 'it has no effect';

/** The syntax of `--version`, alone or with an output format. */
const versionFlag: FlagKind<string> = { label: 'true|raw', bare: 'true', read: (text) => text };

const positiveDurationFlag: FlagKind<number> = {
  label: 'duration',
  read(text, ...rest) {
    const ms = durationFlag.read(text, ...rest);
    if (ms <= 0) throw flagError('a duration above 0s', text);
    return ms;
  },
};

export const runFlags = {
  config: { kind: stringFlag, help: 'File with a KubeletConfiguration, as YAML or JSON.', group: thisRun },
  'config-dir': {
    kind: stringFlag,
    help: 'Directory of *.conf files, each a KubeletConfiguration, that are merged over the file in the order of their names.',
    group: thisRun,
  },
  'validate-config': {
    kind: boolFlag,
    help: 'Check the configuration, report every mistake, and end.',
    group: thisRun,
  },
  'print-config': {
    kind: boolFlag,
    help: 'Print the configuration in effect, each value with where it came from, and end.',
    group: thisRun,
  },
  'lock-file': { kind: stringFlag, help: 'File to lock, so that only one kubelet runs.', group: thisRun },
  'exit-on-lock-contention': {
    kind: boolFlag,
    help: 'End when another kubelet wants the lock file.',
    group: thisRun,
  },
  'notify-ready': {
    kind: choiceFlag(['started', 'ready']),
    default: 'started',
    help: 'When the service manager is told that kubeling has started: as soon as it serves, or once pods can be worked on.',
    group: thisRun,
  },
  version: { kind: versionFlag, help: 'Print the version and end.', group: thisRun },
  help: { kind: boolFlag, short: 'h', help: 'Print this help and end.', group: thisRun },
} satisfies FlagTable;

export const nodeFlags = {
  kubeconfig: {
    kind: stringFlag,
    help: 'File that says how to reach the API server; without it the node stands alone.',
    group: node,
  },
  'bootstrap-kubeconfig': {
    kind: stringFlag,
    help: 'File to ask for a client certificate with while the kubeconfig does not exist yet; it is then written.',
    group: node,
  },
  'hostname-override': {
    kind: stringFlag,
    help: 'Name of the node, instead of the name of the host.',
    group: node,
  },
  'node-ip': {
    kind: listFlag(stringFlag),
    help: 'Address of the node, or one of each family; :: or 0.0.0.0 asks for that family.',
    group: node,
  },
  'node-labels': {
    kind: mapFlag(stringFlag, { value: 'optional' }),
    help: 'Labels the Node is created with.',
    group: node,
  },
  'cloud-provider': {
    kind: choiceFlag(['', 'external']),
    help: 'external when a cloud controller manager completes this node.',
    group: node,
  },
  'after-node-deletion': {
    kind: choiceFlag(['re-register', 'exit', 'stay']),
    default: 're-register',
    help: 'What to do when the Node object was deleted for a minute: make it anew, end, or go on without.',
    group: node,
  },
  'stream-authorization': {
    kind: choiceFlag(['create', 'by-method']),
    default: 'create',
    help: 'Which right exec, attach, run and port-forward need: always create, or get where they are asked for with GET.',
    group: node,
  },
  'keep-api-pods': {
    kind: boolFlag,
    help: 'Keep copies of the pods of the API and of the secrets and config maps they refer to, and start them from these when the API server does not answer at a start.',
    group: node,
  },
  'root-dir': {
    kind: stringFlag,
    help: 'Directory for the files of pods.',
    default: '/var/lib/kubelet',
    group: node,
  },
  'cert-dir': {
    kind: stringFlag,
    help: 'Directory for certificates and keys.',
    default: '/var/lib/kubelet/pki',
    group: node,
  },
  'runtime-cgroups': { kind: stringFlag, help: 'Cgroup the container runtime runs in.', group: node },
  'image-credential-provider-config': {
    kind: stringFlag,
    help: 'File or directory that says which programs know credentials for which images.',
    group: node,
  },
  'image-credential-provider-bin-dir': {
    kind: stringFlag,
    help: 'Directory of these programs.',
    group: node,
  },
  'hook-timeout': {
    kind: positiveDurationFlag,
    help: 'The most a postStart or preStop hook of any pod may take; without it a hook takes as long as it wants.',
    group: node,
  },
  'empty-dir-quota': {
    kind: boolFlag,
    help: 'Have the kernel hold emptyDir volumes on the disk to their sizeLimit, by project quotas, where the file system of the root directory is mounted with prjquota.',
    group: node,
  },
  'eviction-memory-guard': {
    kind: boolFlag,
    help: 'Evict nobody for memory.available while the kernel itself says (MemAvailable) that enough could be had: files that are read often fill memory that is not lost.',
    group: node,
  },
  'detach-dead-volumes': {
    kind: boolFlag,
    help: 'Detach NFS volumes of pods that have ended (umount --lazy) where their server does not answer and no unmount, not even a forced one, takes them away.',
    group: node,
  },
  'shutdown-on-sigterm': {
    kind: boolFlag,
    help: 'End the pods on SIGTERM as when the machine shuts down, by shutdownGracePeriod or shutdownGracePeriodByPodPriority: for machines without systemd. Without it they run on.',
    group: node,
  },
  'kubepods-weight': {
    kind: choiceFlag(['capacity', 'proportional']),
    default: 'capacity',
    help: 'How much CPU pods get when the rest of the machine wants it too: as much as they have CPUs, as the Go kubelet does, or in proportion to what systemReserved and kubeReserved leave to the rest.',
    group: node,
  },
  'housekeeping-interval': {
    kind: durationFlag,
    help: 'How often the resource usage of containers is measured.',
    group: node,
  },
} satisfies FlagTable;

const removed = 'Deprecated';

export const removedFlags = {
  'minimum-container-ttl-duration': {
    kind: durationFlag,
    help: 'How long an ended container is kept at least.',
    deprecated: useEviction,
    group: removed,
  },
  'maximum-dead-containers-per-container': {
    kind: intFlag(-(2 ** 31), 2 ** 31 - 1),
    help: 'How many ended instances of a container are kept.',
    default: '1',
    deprecated: useEviction,
    group: removed,
  },
  'maximum-dead-containers': {
    kind: intFlag(-(2 ** 31), 2 ** 31 - 1),
    help: 'How many ended containers are kept in all; -1 is no limit.',
    default: '-1',
    deprecated: useEviction,
    group: removed,
  },
  'experimental-mounter-path': {
    kind: stringFlag,
    help: 'Program to mount with.',
    deprecated: 'use CSI volumes',
    group: removed,
  },
  'experimental-allocatable-ignore-eviction': {
    kind: boolFlag,
    help: 'Leave eviction thresholds out of what is allocatable.',
    deprecated: 'it will be removed',
    group: removed,
  },
  'application-metrics-count-limit': ignored(intFlag()),
  'boot-id-file': ignored(stringFlag),
  'container-hints': ignored(stringFlag),
  containerd: ignored(stringFlag),
  'containerd-namespace': ignored(stringFlag),
  'enable-load-reader': ignored(boolFlag),
  'event-storage-age-limit': ignored(stringFlag),
  'event-storage-event-limit': ignored(stringFlag),
  'global-housekeeping-interval': ignored(durationFlag),
  'log-cadvisor-usage': ignored(boolFlag),
  'machine-id-file': ignored(stringFlag),
  'storage-driver-user': ignored(stringFlag),
  'storage-driver-password': ignored(stringFlag),
  'storage-driver-host': ignored(stringFlag),
  'storage-driver-db': ignored(stringFlag),
  'storage-driver-table': ignored(stringFlag),
  'storage-driver-secure': ignored(boolFlag),
  'storage-driver-buffer-duration': ignored(durationFlag),
} satisfies FlagTable;

/** Defines a flag that has no effect and is accepted so that old command lines still start. */
function ignored<T>(kind: FlagKind<T>): Flag<T> {
  return { kind, help: 'Ignored.', deprecated: fromCadvisor, group: removed };
}

/**
 * The values of the flags of this file. Paths are absolute; an empty text means that the flag was
 * not given.
 */
export interface KubeletFlags {
  readonly config: string;
  readonly configDir: string;
  readonly validateConfig: boolean;
  readonly printConfig: boolean;
  readonly help: boolean;
  /** The format of --version: `true` or `raw`; empty if the flag was not given. */
  readonly version: string;
  readonly lockFile: string;
  readonly exitOnLockContention: boolean;
  readonly notifyReady: 'started' | 'ready';
  /** The path of the kubeconfig; empty on a node without an API server. */
  readonly kubeconfig: string;
  readonly bootstrapKubeconfig: string;
  /** The node name, trimmed and in lower case; empty to use the hostname. */
  readonly hostnameOverride: string;
  readonly nodeIps: readonly string[];
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly cloudProvider: '' | 'external';
  readonly keepApiPods: boolean;
  readonly streamAuthorization: 'create' | 'by-method';
  readonly afterNodeDeletion: 're-register' | 'exit' | 'stay';
  readonly rootDir: string;
  readonly certDir: string;
  readonly runtimeCgroups: string;
  readonly imageCredentialProviderConfig: string;
  readonly imageCredentialProviderBinDir: string;
  /** The time limit of postStart and preStop hooks; undefined for no limit. */
  readonly hookTimeoutMs: number | undefined;
  readonly emptyDirQuota: boolean;
  readonly evictionMemoryGuard: boolean;
  readonly detachDeadVolumes: boolean;
  readonly shutdownOnSigterm: boolean;
  readonly kubepodsWeight: 'capacity' | 'proportional';
  readonly housekeepingIntervalMs: number | undefined;
  readonly minimumContainerTtlMs: number;
  readonly maxDeadContainersPerContainer: number;
  /** The maximum number of exited containers to keep; negative for no limit. */
  readonly maxDeadContainers: number;
  readonly experimentalMounterPath: string;
  readonly ignoreEvictionInAllocatable: boolean;
}
