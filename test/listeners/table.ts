/** How kubeling is started: `kubeling up` or `kubeling run`. */
export type Way = 'up' | 'run';

/**
 * One listener, its allowed callers and its responses to callers without credentials; verified by
 * test/integration/listeners.test.ts.
 */
export interface ListenerRow {
  readonly name: string;
  readonly ways: readonly Way[];
  /** The process name that the kernel reports for the listener. */
  readonly process: 'node-MainThread' | 'containerd' | 'containerd-shim';
  readonly place: TcpAddress | SocketFile;
  /** The permitted callers, and what prevents access by all others. */
  readonly callers: string;
  readonly check: string;
}

export interface TcpAddress {
  readonly kind: 'tcp';
  readonly host: '127.0.0.1' | '0.0.0.0';
  /** The port number, or `any` for a port chosen by the kernel. */
  readonly port: number | 'any';
  readonly tls: boolean;
  /**
   * The expected HTTP status of each request line, sent to the listener without credentials, by a
   * client on the network of the listener's address.
   */
  readonly answers: Readonly<Record<string, number>>;
}

export interface SocketFile {
  readonly kind: 'unix';
  /**
   * The path of the socket. `DATA` stands for the data directory, `ROOT` for the root directory of
   * the kubelet, `*` for one path component.
   */
  readonly path: string;
  readonly mode: string;
  readonly owner: 'root:root';
}

const root = 'root';

/**
 * All listeners of the processes of a node. test/integration/listeners.test.ts fails if a process
 * has a listener that is missing here; docs/SECURITY.md contains the table.
 */
export const listenerTable: readonly ListenerRow[] = [
  {
    name: 'embedded API',
    ways: ['up'],
    process: 'node-MainThread',
    place: {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 7443,
      tls: true,
      answers: {
        'GET /healthz': 200,
        'GET /api/v1/secrets': 403,
        'GET /metrics': 403,
        'GET /debug/pprof/': 403,
      },
    },
    callers: 'client certificates of its CA, tokens of service accounts with a grant',
    check: 'TLS, authentication and authorization of each request; health, version and issuer keys are open',
  },
  {
    name: 'kubelet API',
    ways: ['up'],
    process: 'node-MainThread',
    place: {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 'any',
      tls: true,
      answers: { 'GET /healthz': 401, 'GET /pods': 401, 'GET /metrics': 401, 'GET /debug/pprof/': 401 },
    },
    callers: 'the embedded API, client certificates of its CA',
    check: 'TLS, authentication and authorization of each request before it is routed',
  },
  {
    name: 'kubelet API',
    ways: ['run'],
    process: 'node-MainThread',
    place: {
      kind: 'tcp',
      host: '0.0.0.0',
      port: 10_250,
      tls: true,
      answers: { 'GET /healthz': 401, 'GET /pods': 401, 'GET /metrics': 401, 'GET /debug/pprof/': 401 },
    },
    callers: 'the API server, other clients that the cluster allows',
    check: 'TLS, authentication and authorization of each request before it is routed',
  },
  {
    name: 'read-only port',
    ways: ['run'],
    process: 'node-MainThread',
    place: {
      kind: 'tcp',
      host: '0.0.0.0',
      port: 10_255,
      tls: false,
      answers: {
        'GET /healthz': 200,
        'GET /pods': 200,
        'GET /configz': 404,
        'POST /exec/a/b/c': 405,
        'GET /debug/pprof/': 405,
      },
    },
    callers: 'the network; off unless `readOnlyPort` is set',
    check: 'serves pods, statistics, metrics and health only',
  },
  {
    name: 'commands of kubeling',
    ways: ['up', 'run'],
    process: 'node-MainThread',
    place: {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 'any',
      tls: false,
      answers: { 'GET /healthz': 200, 'GET /pods': 401, 'GET /metrics': 401, 'POST /exec/a/b/c': 401 },
    },
    callers: root,
    check: 'token of `ROOT/loopback-token` (mode 0600), `Host` and `Origin`; health is open',
  },
  {
    name: 'health',
    ways: ['up', 'run'],
    process: 'node-MainThread',
    place: {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 10_248,
      tls: false,
      answers: { 'GET /healthz': 200, 'GET /pods': 404, 'GET /metrics': 404, 'GET /debug/pprof/': 404 },
    },
    callers: 'processes of the node',
    check: 'serves health only; `Host` and `Origin`',
  },
  {
    name: 'streaming server of containerd',
    ways: ['up'],
    process: 'containerd',
    place: {
      kind: 'tcp',
      host: '127.0.0.1',
      port: 'any',
      tls: false,
      answers: { 'GET /': 404, 'GET /exec/AAAAAAAA': 404, 'POST /attach/AAAAAAAA': 404, 'GET /metrics': 404 },
    },
    callers: 'kubeling, with the URL of an exec, attach or port-forward it asked for',
    check: 'random token in the URL, valid once and for a minute, returned on the CRI socket only',
  },
  {
    name: 'CRI of containerd',
    ways: ['up'],
    process: 'containerd',
    place: { kind: 'unix', path: 'DATA/containerd/containerd.sock', mode: '660', owner: 'root:root' },
    callers: root,
    check: 'file mode',
  },
  {
    name: 'events of shims',
    ways: ['up'],
    process: 'containerd',
    place: { kind: 'unix', path: 'DATA/containerd/ttrpc.sock', mode: '660', owner: 'root:root' },
    callers: 'shims',
    check: 'file mode',
  },
  {
    name: 'shim of a pod',
    ways: ['up'],
    process: 'containerd-shim',
    place: { kind: 'unix', path: '/run/containerd/s/*', mode: '600', owner: 'root:root' },
    callers: 'containerd',
    check: 'file mode',
  },
  {
    name: 'registration of device plugins',
    ways: ['up', 'run'],
    process: 'node-MainThread',
    place: { kind: 'unix', path: 'ROOT/device-plugins/kubelet.sock', mode: '600', owner: 'root:root' },
    callers: 'device plugins, which run as root',
    check: 'file mode, and mode 0750 of the directories',
  },
  {
    name: 'pod resources',
    ways: ['up', 'run'],
    process: 'node-MainThread',
    place: { kind: 'unix', path: 'ROOT/pod-resources/kubelet.sock', mode: '600', owner: 'root:root' },
    callers: 'monitoring agents, which run as root',
    check: 'file mode, and mode 0750 of the directories',
  },
];

/** The rows of the listener table in docs/SECURITY.md, without its header. */
export function renderListeners(): readonly string[] {
  return listenerTable.map(({ name, ways, place, callers, check }) => {
    const under = ways.map((way) => `\`${way}\``).join(', ');
    return `| ${[name, under, shownPlace(place), callers, check, shownAnswers(place)].join(' | ')} |`;
  });
}

function shownPlace(place: ListenerRow['place']): string {
  if (place.kind === 'unix') return `\`${place.path}\`, ${place.owner}, mode 0${place.mode}`;
  const port = place.port === 'any' ? 'any free port' : `port ${place.port}`;
  return `${place.host}, ${port}, ${place.tls ? 'TLS' : 'HTTP'}`;
}

function shownAnswers(place: ListenerRow['place']): string {
  if (place.kind === 'unix') return 'permission denied';
  return Object.entries(place.answers)
    .map(([request, status]) => `\`${request}\` ${status}`)
    .join(', ');
}
