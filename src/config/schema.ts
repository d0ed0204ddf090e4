import {
  bool,
  choiceOf,
  currentFlag,
  duration,
  type Effective,
  exact,
  type Fields,
  flag,
  float,
  int32,
  int64,
  list,
  map,
  nested,
  object,
  optional,
  plain,
  quantity,
  text,
} from './fields.ts';
import { strongCiphers, tlsVersions, weakCiphers } from './rules-server.ts';
import {
  gates,
  headers,
  reservedMemory,
  singlePair,
  taints,
  thresholds,
  verbosities,
} from './structured-flags.ts';
import {
  checkCleanPath,
  checkCpuList,
  checkIpAddress,
  checkNetworks,
  checkPreviousVersion,
  checkTraceEndpoint,
  checkUnixEndpoint,
  checkUrl,
} from './text-checks.ts';

/**
 * KubeletConfiguration of kubelet.config.k8s.io/v1beta1 as in Kubernetes 1.36, field by field.
 * Three defaults differ from the Go kubelet intentionally: unauthenticated access is disabled even
 * without a file, a host with cgroup v1 is accepted, and the eviction defaults always apply.
 */

const ms = 1;
const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
/** A duration of at least one millisecond. */
const some = { min: ms };
const notNegative = { min: 0 };
const port = int32(1, 65535);
const portOrOff = int32(0, 65535);
const count = int32(0);
const percent = int32(0, 100);
const path = text({ path: 'resolved' });

const podSources = {
  staticPodPath: plain(
    path,
    '',
    'Directory of pod manifests to run, or one such file.',
    flag('pod-manifest-path'),
  ),
  staticPodURL: plain(
    text({ check: checkUrl }),
    '',
    'URL to take more pod manifests from.',
    flag('manifest-url'),
  ),
  staticPodURLHeader: plain(
    map(list(text({ secret: 'hidden' }))),
    {},
    'HTTP headers to send to that URL; a name may have several values.',
    flag('manifest-url-header', headers),
  ),
  fileCheckFrequency: plain(
    duration(some),
    20 * second,
    'How often manifest files are read again.',
    flag('file-check-frequency'),
  ),
  httpCheckFrequency: plain(
    duration(some),
    20 * second,
    'How often the manifest URL is asked.',
    flag('http-check-frequency'),
  ),
  syncFrequency: plain(
    duration(some),
    minute,
    'How long a pod stays unlooked-at when nothing happens to it.',
    flag('sync-frequency'),
  ),
  runOnce: plain(bool, false, 'No longer possible; refused.', flag('runonce')),
} satisfies Fields;

const server = {
  enableServer: exact(bool, true, 'Serve the HTTPS API.', flag('enable-server')),
  address: plain(
    text({ check: checkIpAddress }),
    '0.0.0.0',
    'Address to serve on; 0.0.0.0 or :: is every address.',
    flag('address'),
  ),
  port: plain(port, 10250, 'Port of the HTTPS API.', flag('port')),
  readOnlyPort: plain(
    portOrOff,
    0,
    'Port that answers anybody without asking who they are; 0 is off.',
    flag('read-only-port'),
  ),
  healthzPort: exact(portOrOff, 10248, 'Port of the local health check; 0 is off.', flag('healthz-port')),
  healthzBindAddress: plain(
    text({ check: checkIpAddress }),
    '127.0.0.1',
    'Address of the health check.',
    flag('healthz-bind-address'),
  ),
  tlsCertFile: plain(
    path,
    '',
    'Certificate to serve with, intermediates after it; without one it is self-signed.',
    flag('tls-cert-file'),
  ),
  tlsPrivateKeyFile: plain(path, '', 'Private key of that certificate.', flag('tls-private-key-file')),
  tlsCipherSuites: plain(
    list(choiceOf(...strongCiphers, ...weakCiphers)),
    [],
    'Cipher suites to allow below TLS 1.3.',
    flag('tls-cipher-suites'),
  ),
  tlsCurvePreferences: plain(
    list(int32(1, 65535)),
    [],
    'Key exchanges to allow, as the numbers TLS gives them.',
  ),
  tlsMinVersion: plain(
    choiceOf('', ...tlsVersions),
    '',
    'Oldest TLS version to accept; 1.2 when empty.',
    flag('tls-min-version'),
  ),
  authentication: nested(
    {
      x509: nested(
        {
          clientCAFile: plain(
            path,
            '',
            'Certificates of those who may vouch for clients.',
            flag('client-ca-file'),
          ),
        },
        'Clients that show a certificate.',
      ),
      webhook: nested(
        {
          enabled: exact(
            bool,
            true,
            'Ask the API server who a bearer token belongs to.',
            flag('authentication-token-webhook'),
          ),
          cacheTTL: plain(
            duration(notNegative),
            2 * minute,
            'How long such an answer is kept.',
            flag('authentication-token-webhook-cache-ttl'),
          ),
        },
        'Clients that show a token.',
      ),
      anonymous: nested(
        {
          enabled: exact(
            bool,
            false,
            'Let clients in that show nothing, as system:anonymous.',
            flag('anonymous-auth'),
          ),
        },
        'Clients that show nothing.',
      ),
    },
    'How clients of the HTTPS API prove who they are.',
  ),
  authorization: nested(
    {
      mode: plain(
        choiceOf('AlwaysAllow', 'Webhook'),
        'Webhook',
        'Ask the API server what a client may do, or allow all.',
        flag('authorization-mode'),
      ),
      webhook: nested(
        {
          cacheAuthorizedTTL: plain(
            duration(notNegative),
            5 * minute,
            'How long a yes is kept.',
            flag('authorization-webhook-cache-authorized-ttl'),
          ),
          cacheUnauthorizedTTL: plain(
            duration(notNegative),
            30 * second,
            'How long a no is kept.',
            flag('authorization-webhook-cache-unauthorized-ttl'),
          ),
        },
        'How long its answers are kept.',
      ),
    },
    'What clients of the HTTPS API may do.',
  ),
  enableDebuggingHandlers: exact(
    bool,
    true,
    'Serve logs, exec, attach and port-forward.',
    flag('enable-debugging-handlers'),
  ),
  enableContentionProfiling: plain(
    bool,
    false,
    'Profile waiting, where profiling is served.',
    flag('contention-profiling'),
  ),
  enableProfilingHandler: exact(bool, true, 'Serve /debug/pprof.'),
  enableDebugFlagsHandler: exact(bool, true, 'Serve /debug/flags/v.'),
  enableSystemLogHandler: exact(bool, true, 'Serve the log files of the host under /logs/.'),
  enableSystemLogQuery: exact(bool, false, 'Let /logs/ be asked for the journal of services.'),
  streamingConnectionIdleTimeout: plain(
    duration(notNegative),
    4 * hour,
    'Close exec, attach and port-forward connections that were silent this long; 0 on the command line is never.',
    flag('streaming-connection-idle-timeout'),
  ),
} satisfies Fields;

const certificates = {
  rotateCertificates: plain(
    bool,
    false,
    'Ask for a new client certificate before the old one expires.',
    flag('rotate-certificates'),
  ),
  serverTLSBootstrap: plain(
    bool,
    false,
    'Ask the cluster for the serving certificate and renew it.',
    flag('rotate-server-certificates'),
  ),
} satisfies Fields;

const clusterNode = {
  registerNode: exact(bool, true, 'Create the Node object in the API server.', flag('register-node')),
  registerWithTaints: plain(
    list(
      object({
        key: exact(text(), '', 'What the taint is called.'),
        value: plain(text(), '', 'What it is set to.'),
        effect: exact(text(), '', 'NoSchedule, PreferNoSchedule or NoExecute.'),
        timeAdded: optional(text(), 'Not to be given: only the cluster sets it.'),
      }),
    ),
    [],
    'Taints the Node is created with.',
    flag('register-with-taints', taints),
  ),
  providerID: plain(text(), '', 'How the cloud calls this machine.', currentFlag('provider-id')),
  nodeStatusUpdateFrequency: plain(
    duration(some),
    10 * second,
    'How often the node looks at itself.',
    flag('node-status-update-frequency'),
  ),
  nodeStatusReportFrequency: plain(
    duration(some),
    5 * minute,
    'How often an unchanged status is sent all the same.',
  ),
  nodeLeaseDurationSeconds: plain(int32(1), 40, 'How long the node counts as alive after its last sign.'),
  nodeStatusMaxImages: exact(
    int32(-1),
    50,
    'How many images the Node lists; -1 is all.',
    flag('node-status-max-images'),
  ),
  kubeAPIQPS: exact(count, 50, 'Requests a second to the API server.', flag('kube-api-qps')),
  kubeAPIBurst: plain(count, 100, 'Requests to the API server in one burst.', flag('kube-api-burst')),
  contentType: plain(
    text(),
    'application/vnd.kubernetes.protobuf',
    'Encoding to prefer with the API server.',
    flag('kube-api-content-type'),
  ),
  eventRecordQPS: exact(count, 50, 'Events a second to record; 0 is no limit.', flag('event-qps')),
  eventBurst: plain(count, 100, 'Events to record in one burst.', flag('event-burst')),
  configMapAndSecretChangeDetectionStrategy: plain(
    choiceOf('Get', 'Cache', 'Watch'),
    'Watch',
    'How changes of ConfigMaps and Secrets are noticed.',
  ),
} satisfies Fields;

const runtime = {
  containerRuntimeEndpoint: plain(
    text({ check: checkUnixEndpoint }),
    'unix:///run/containerd/containerd.sock',
    'Socket of the container runtime.',
    flag('container-runtime-endpoint'),
  ),
  imageServiceEndpoint: plain(
    text({ check: checkUnixEndpoint }),
    '',
    'Socket of its image service, where that is another.',
    flag('image-service-endpoint'),
  ),
  runtimeRequestTimeout: plain(
    duration(some),
    2 * minute,
    'How long the runtime may take, pulls and streams aside.',
    flag('runtime-request-timeout'),
  ),
  maxPods: plain(count, 110, 'How many pods may run.', flag('max-pods')),
  podsPerCore: plain(
    count,
    0,
    'How many pods may run for each core, at most maxPods; 0 is no such limit.',
    flag('pods-per-core'),
  ),
  podPidsLimit: exact(
    int64(),
    -1,
    'How many processes a pod may have; -1 leaves it to the node.',
    flag('pod-max-pids'),
  ),
  crashLoopBackOff: nested(
    {
      maxContainerRestartPeriod: optional(
        duration({ min: second, max: 300 * second }),
        'Longest wait before a crashing container is started again.',
      ),
    },
    'How crashing containers are restarted.',
  ),
  maxOpenFiles: plain(int64(0), 1_000_000, 'How many files kubeling may open.', flag('max-open-files')),
  oomScoreAdj: exact(
    int32(-1000, 1000),
    -999,
    'How likely the kernel is to kill kubeling when memory is short.',
    flag('oom-score-adj'),
  ),
} satisfies Fields;

const images = {
  registryPullQPS: exact(count, 5, 'Image pulls a second; 0 is no limit.', flag('registry-qps')),
  registryBurst: plain(count, 10, 'Image pulls in one burst.', flag('registry-burst')),
  serializeImagePulls: exact(bool, true, 'Pull one image at a time.', flag('serialize-image-pulls')),
  maxParallelImagePulls: optional(int32(1), 'How many images may be pulled at once.'),
  imagePullCredentialsVerificationPolicy: plain(
    choiceOf('', 'NeverVerify', 'NeverVerifyPreloadedImages', 'NeverVerifyAllowlistedImages', 'AlwaysVerify'),
    '',
    'Whether a pod must show credentials for an image that is already here.',
  ),
  preloadedImagesVerificationAllowlist: plain(
    list(text()),
    [],
    'Images exempt from that under NeverVerifyAllowlistedImages.',
  ),
  imageMinimumGCAge: plain(
    duration(notNegative),
    2 * minute,
    'How long an unused image is kept in any case.',
    flag('minimum-image-ttl-duration'),
  ),
  imageMaximumGCAge: plain(
    duration(notNegative),
    0,
    'How long an unused image is kept at most; 0 is for ever.',
  ),
  imageGCHighThresholdPercent: exact(
    percent,
    85,
    'Disk usage at which unused images are removed.',
    flag('image-gc-high-threshold'),
  ),
  imageGCLowThresholdPercent: exact(
    percent,
    80,
    'Disk usage at which removing stops.',
    flag('image-gc-low-threshold'),
  ),
} satisfies Fields;

const containerLogs = {
  podLogsDir: plain(
    text({ path: 'resolved', check: checkCleanPath }),
    '/var/log/pods',
    'Where the logs of pods are written.',
  ),
  containerLogMaxSize: plain(
    text(),
    '10Mi',
    'Size at which a container log is rotated.',
    flag('container-log-max-size'),
  ),
  containerLogMaxFiles: exact(
    int32(2),
    5,
    'How many log files a container may have.',
    flag('container-log-max-files'),
  ),
  containerLogMaxWorkers: exact(int32(1), 1, 'How many logs may be rotated at once.'),
  containerLogMonitorInterval: exact(
    duration({ min: 3 * second }),
    10 * second,
    'How often the sizes of logs are looked at.',
  ),
} satisfies Fields;

const cgroups = {
  cgroupDriver: plain(
    choiceOf('cgroupfs', 'systemd'),
    'cgroupfs',
    'Who manages cgroups, unless the runtime says.',
    flag('cgroup-driver'),
  ),
  cgroupRoot: plain(text(), '', 'Cgroup under which pods are put.', flag('cgroup-root')),
  cgroupsPerQOS: exact(bool, true, 'Give each quality-of-service class a cgroup.', flag('cgroups-per-qos')),
  kubeletCgroups: plain(text(), '', 'Cgroup to run kubeling in.', flag('kubelet-cgroups')),
  systemCgroups: plain(
    text(),
    '',
    'Cgroup to move all other processes of the host into.',
    flag('system-cgroups'),
  ),
  failCgroupV1: exact(bool, false, 'Refuse to start on a host with cgroup v1.', currentFlag('fail-cgroupv1')),
  failSwapOn: exact(bool, true, 'Refuse to start on a host that swaps.', flag('fail-swap-on')),
  memorySwap: nested(
    { swapBehavior: plain(choiceOf('', 'NoSwap', 'LimitedSwap'), '', 'How much swap containers may use.') },
    'Swap for containers.',
  ),
  cpuCFSQuota: exact(bool, true, 'Hold containers to their CPU limits.', flag('cpu-cfs-quota')),
  cpuCFSQuotaPeriod: exact(
    duration({ min: ms, max: second }),
    100 * ms,
    'Period the CPU limit is counted over.',
    flag('cpu-cfs-quota-period'),
  ),
  singleProcessOOMKill: optional(
    bool,
    'Kill only the process that ran out of memory, not its whole container.',
  ),
  memoryThrottlingFactor: exact(float(0, 1), 0.9, 'Share of the memory limit at which slowing down starts.'),
  memoryReservationPolicy: plain(
    choiceOf('None', 'TieredReservation'),
    'None',
    'Whether requested memory is protected.',
  ),
  qosReserved: plain(map(text()), {}, 'Share of memory kept for pods with guarantees.', flag('qos-reserved')),
} satisfies Fields;

const allocation = {
  cpuManagerPolicy: plain(
    choiceOf('none', 'static'),
    'none',
    'Whether containers can have CPUs of their own.',
    flag('cpu-manager-policy'),
  ),
  cpuManagerPolicyOptions: plain(
    map(text()),
    {},
    'Options of that policy.',
    flag('cpu-manager-policy-options', singlePair),
  ),
  cpuManagerReconcilePeriod: plain(
    duration(some),
    10 * second,
    'How often CPU assignments are put right.',
    flag('cpu-manager-reconcile-period'),
  ),
  memoryManagerPolicy: plain(
    choiceOf('None', 'Static'),
    'None',
    'Whether containers can have memory of one NUMA node.',
    flag('memory-manager-policy'),
  ),
  reservedMemory: plain(
    list(
      object({
        numaNode: exact(count, 0, 'Number of the NUMA node.'),
        limits: exact(map(quantity), {}, 'What is kept back of each kind of memory.'),
      }),
    ),
    [],
    'Memory of NUMA nodes that is not given to containers.',
    flag('reserved-memory', reservedMemory),
  ),
  topologyManagerPolicy: plain(
    choiceOf('none', 'best-effort', 'restricted', 'single-numa-node'),
    'none',
    'How hard CPUs, memory and devices are kept together.',
    flag('topology-manager-policy'),
  ),
  topologyManagerScope: plain(
    choiceOf('container', 'pod'),
    'container',
    'What is kept together: each container or the pod.',
    flag('topology-manager-scope'),
  ),
  topologyManagerPolicyOptions: plain(
    map(text()),
    {},
    'Options of that policy.',
    flag('topology-manager-policy-options'),
  ),
  systemReserved: plain(
    map(text()),
    {},
    'Resources kept for the host, as cpu=200m,memory=500Mi.',
    flag('system-reserved'),
  ),
  kubeReserved: plain(map(text()), {}, 'Resources kept for kubeling and the runtime.', flag('kube-reserved')),
  reservedSystemCPUs: plain(
    text({ check: checkCpuList }),
    '',
    'CPUs kept for the host, instead of an amount.',
    flag('reserved-cpus'),
  ),
  systemReservedCgroup: plain(
    text(),
    '',
    'Cgroup that is held to systemReserved.',
    flag('system-reserved-cgroup'),
  ),
  kubeReservedCgroup: plain(text(), '', 'Cgroup that is held to kubeReserved.', flag('kube-reserved-cgroup')),
  enforceNodeAllocatable: exact(
    list(text()),
    ['pods'],
    'Which reservations are enforced.',
    flag('enforce-node-allocatable'),
  ),
  localStorageCapacityIsolation: exact(
    bool,
    true,
    'Count and limit the disk that pods use.',
    flag('local-storage-capacity-isolation'),
  ),
} satisfies Fields;

const eviction = {
  evictionHard: exact(
    map(text()),
    {
      'memory.available': '100Mi',
      'nodefs.available': '10%',
      'nodefs.inodesFree': '5%',
      'imagefs.available': '15%',
      'imagefs.inodesFree': '5%',
    },
    'What must stay free, as memory.available<100Mi; pods are evicted at once when it does not.',
    flag('eviction-hard', thresholds),
  ),
  evictionSoft: plain(
    map(text()),
    {},
    'What should stay free; pods are evicted after a grace period.',
    flag('eviction-soft', thresholds),
  ),
  evictionSoftGracePeriod: plain(
    map(text()),
    {},
    'How long each of these may be missed.',
    flag('eviction-soft-grace-period'),
  ),
  evictionMinimumReclaim: plain(
    map(text()),
    {},
    'How much more than the threshold is freed.',
    flag('eviction-minimum-reclaim'),
  ),
  evictionPressureTransitionPeriod: plain(
    duration(notNegative),
    5 * minute,
    'How long pressure is reported after it was last seen.',
    flag('eviction-pressure-transition-period'),
  ),
  evictionMaxPodGracePeriod: plain(
    int32(),
    0,
    'Longest grace, in seconds, for a pod evicted softly; negative leaves a pod its own.',
    flag('eviction-max-pod-grace-period'),
  ),
  mergeDefaultEvictionSettings: exact(
    bool,
    false,
    'Keep the defaults of signals that evictionHard does not name.',
  ),
  kernelMemcgNotification: plain(
    bool,
    false,
    'Let the kernel tell when memory falls short.',
    flag('kernel-memcg-notification'),
  ),
} satisfies Fields;

const network = {
  clusterDomain: plain(text(), '', 'DNS domain of the cluster.', flag('cluster-domain')),
  clusterDNS: plain(
    list(text({ check: checkIpAddress })),
    [],
    'Addresses of the DNS servers of the cluster.',
    flag('cluster-dns'),
  ),
  resolvConf: exact(
    path,
    '/etc/resolv.conf',
    'Resolver file that pods start from; empty is none.',
    flag('resolv-conf'),
  ),
  podCIDR: plain(
    text({ check: checkNetworks }),
    '',
    'Network of the pods, when there is no cluster to say.',
    flag('pod-cidr'),
  ),
  hairpinMode: plain(
    choiceOf('promiscuous-bridge', 'hairpin-veth', 'none'),
    'promiscuous-bridge',
    'How a pod reaches itself through its service.',
    flag('hairpin-mode'),
  ),
  makeIPTablesUtilChains: exact(
    bool,
    true,
    'Keep the iptables chains others look for.',
    flag('make-iptables-util-chains'),
  ),
  iptablesMasqueradeBit: exact(int32(0, 31), 14, 'Has no effect any more.'),
  iptablesDropBit: exact(int32(0, 31), 15, 'Has no effect any more.'),
} satisfies Fields;

const volumes = {
  enableControllerAttachDetach: exact(
    bool,
    true,
    'Leave attaching volumes to the cluster; otherwise volumes of CSI drivers that must be attached are refused.',
    flag('enable-controller-attach-detach'),
  ),
  volumePluginDir: plain(
    path,
    '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    'Directory of flex-volume plugins.',
    flag('volume-plugin-dir'),
  ),
  volumeStatsAggPeriod: plain(
    duration(),
    minute,
    'How often the disk usage of volumes is counted; negative is never.',
    flag('volume-stats-agg-period'),
  ),
} satisfies Fields;

const security = {
  seccompDefault: exact(
    bool,
    false,
    'Give every container the seccomp profile of the runtime.',
    currentFlag('seccomp-default'),
  ),
  allowedUnsafeSysctls: plain(
    list(text()),
    [],
    'Sysctls pods may set although they can hurt others; * at the end matches.',
    flag('allowed-unsafe-sysctls'),
  ),
  protectKernelDefaults: plain(
    bool,
    false,
    'Fail rather than change settings of the kernel.',
    flag('protect-kernel-defaults'),
  ),
  userNamespaces: optional(
    object({ idsPerPod: optional(int64(), 'How many ids each pod gets.') }),
    'User namespaces of pods.',
  ),
} satisfies Fields;

const shutdown = {
  shutdownGracePeriod: plain(duration(), 0, 'How long the shutdown of the host is held up for pods.'),
  shutdownGracePeriodCriticalPods: plain(duration(), 0, 'How much of that belongs to critical pods.'),
  shutdownGracePeriodByPodPriority: plain(
    list(
      object({
        priority: exact(int32(), 0, 'Priority from which on this applies.'),
        shutdownGracePeriodSeconds: exact(int64(0), 0, 'How long these pods get.'),
      }),
    ),
    [],
    'The same by the priority of pods, instead of the two above.',
  ),
} satisfies Fields;

const outputRouting = {
  splitStream: (name: string) => plain(bool, false, 'Errors to stderr, the rest to stdout.', flag(name)),
  infoBufferSize: (name: string) =>
    exact(quantity, { nanos: 0n, format: 'DecimalSI' }, 'How much of the rest is buffered.', flag(name)),
};

const observability = {
  logging: nested(
    {
      format: plain(choiceOf('text', 'json'), 'text', 'How log lines look.', flag('logging-format')),
      flushFrequency: plain(
        duration({ min: ms, numbers: 'nanoseconds' }),
        5 * second,
        'How long a log line may be held back.',
        currentFlag('log-flush-frequency'),
      ),
      verbosity: exact(int32(0), 0, 'How much to log.', currentFlag('v')),
      vmodule: plain(
        list(
          object({
            filePattern: exact(text(), '', 'Name of a source file without its ending, * matches.'),
            verbosity: exact(int32(0), 0, 'How much to log there.'),
          }),
        ),
        [],
        'How much to log in single source files.',
        currentFlag('vmodule', verbosities),
      ),
      options: nested(
        {
          text: nested(
            {
              splitStream: outputRouting.splitStream('log-text-split-stream'),
              infoBufferSize: outputRouting.infoBufferSize('log-text-info-buffer-size'),
            },
            'Of the text format.',
          ),
          json: nested(
            {
              splitStream: outputRouting.splitStream('log-json-split-stream'),
              infoBufferSize: outputRouting.infoBufferSize('log-json-info-buffer-size'),
            },
            'Of the JSON format.',
          ),
        },
        'Options of the formats.',
      ),
    },
    'What is logged and how.',
  ),
  tracing: optional(
    object({
      endpoint: optional(
        text({ check: checkTraceEndpoint }),
        'Collector to send traces to; localhost:4317 when not given.',
      ),
      samplingRatePerMillion: optional(int32(0, 1_000_000), 'How many of a million spans are kept.'),
    }),
    'Traces.',
  ),
  showHiddenMetricsForVersion: plain(
    text({ check: checkPreviousVersion }),
    '',
    'Version whose hidden metrics are still shown.',
  ),
} satisfies Fields;

const features = {
  featureGates: plain(map(bool), {}, 'Features to switch on or off.', flag('feature-gates', gates)),
} satisfies Fields;

/** The configuration fields, in the order and under the headings of the documentation. */
export const sections: readonly (readonly [title: string, fields: Fields])[] = [
  ['Pod sources', podSources],
  ['Server', server],
  ['Certificates', certificates],
  ['Node and API server', clusterNode],
  ['Container runtime and pods', runtime],
  ['Images', images],
  ['Container logs', containerLogs],
  ['Cgroups, CPU and memory', cgroups],
  ['Allocation', allocation],
  ['Eviction', eviction],
  ['Network', network],
  ['Volumes', volumes],
  ['Security', security],
  ['Shutdown of the host', shutdown],
  ['Logs, traces and metrics', observability],
  ['Features', features],
];

export const kubeletConfigurationFields = {
  ...podSources,
  ...server,
  ...certificates,
  ...clusterNode,
  ...runtime,
  ...images,
  ...containerLogs,
  ...cgroups,
  ...allocation,
  ...eviction,
  ...network,
  ...volumes,
  ...security,
  ...shutdown,
  ...observability,
  ...features,
} satisfies Fields;

/** The effective configuration: every field has a value, and durations are in milliseconds. */
export type KubeletConfiguration = Effective<typeof kubeletConfigurationFields>;
export type FieldName = keyof typeof kubeletConfigurationFields;

export const apiVersion = 'kubelet.config.k8s.io/v1beta1';
export const kind = 'KubeletConfiguration';
