/**
 * Every error code kubeling can report, with the kind that decides what happens next.
 * `docs/errors.md` explains each to users; a test keeps the two lists equal.
 */

/** What the caller may do about an error. */
export type ErrorKind =
  /** The thing is not there; for stop and remove that means done. */
  | 'NotFound'
  /** Somebody else got there first: look again, then decide. */
  | 'Conflict'
  /** The input is wrong; the same call can never succeed. */
  | 'Invalid'
  /** Not allowed. */
  | 'Denied'
  /** The other side does not offer this. */
  | 'Unsupported'
  /** The other side tried and says it failed; retry with back-off. */
  | 'Failed'
  /** Nobody answered; retry with back-off, the outcome is unknown. */
  | 'Unavailable'
  /** It took too long; retry with back-off, the outcome is unknown. */
  | 'DeadlineExceeded'
  /** We gave up on purpose; not a failure. */
  | 'Cancelled'
  /** Our own mistake: report loudly, keep the node alive. */
  | 'Bug';

export const errorKinds = {
  BUG: 'Bug',
  CLI_USAGE: 'Invalid',
  CLI_UNKNOWN_COMMAND: 'Invalid',
  CANCELLED: 'Cancelled',
  DEADLINE_EXCEEDED: 'DeadlineExceeded',
  COMMAND_NOT_FOUND: 'Unsupported',
  COMMAND_FAILED: 'Failed',
  PROTOBUF_MALFORMED: 'Failed',
  CONFIG_INVALID: 'Invalid',
  CRI_NOT_FOUND: 'NotFound',
  CRI_ALREADY_EXISTS: 'Conflict',
  CRI_INVALID: 'Invalid',
  CRI_DENIED: 'Denied',
  CRI_UNSUPPORTED: 'Unsupported',
  CRI_FAILED: 'Failed',
  CRI_EXHAUSTED: 'Unavailable',
  CRI_UNAVAILABLE: 'Unavailable',
  CRI_DEADLINE: 'DeadlineExceeded',
  CRI_TOO_LARGE: 'Failed',
  CRI_BAD_ANSWER: 'Failed',
  CRI_VERSION: 'Unsupported',
  CRI_ENDPOINT: 'Invalid',
  CRI_EXEC_TIMEOUT: 'DeadlineExceeded',
  API_NOT_FOUND: 'NotFound',
  API_CONFLICT: 'Conflict',
  API_GONE: 'Conflict',
  API_INVALID: 'Invalid',
  API_UNAUTHORIZED: 'Denied',
  API_FORBIDDEN: 'Denied',
  API_UNSUPPORTED: 'Unsupported',
  API_TOO_MANY: 'Unavailable',
  API_FAILED: 'Failed',
  API_UNAVAILABLE: 'Unavailable',
  API_DEADLINE: 'DeadlineExceeded',
  API_BAD_ANSWER: 'Failed',
  KUBECONFIG_INVALID: 'Invalid',
  OBJECT_NOT_FOUND: 'NotFound',
  OBJECT_NOT_REGISTERED: 'Failed',
  OBJECT_UNSYNCED: 'Unavailable',
  OBJECTS_STANDALONE: 'Unsupported',
  TOKEN_REQUEST: 'Failed',
  CERTIFICATE_INVALID: 'Invalid',
  CERTIFICATE_STORE: 'Failed',
  CERTIFICATE_DENIED: 'Denied',
  CERTIFICATE_NOT_ISSUED: 'Failed',
  CERTIFICATE_BOOTSTRAP: 'Invalid',
  CERTIFICATE_LOST: 'Failed',
  SELF_CHECK: 'Failed',
  SERVER_LISTEN: 'Unavailable',
  AUTH_CONFIG: 'Invalid',
  AUTH_FAILED: 'Denied',
  CLIENT_CA: 'Invalid',
  TLS_SETTINGS: 'Invalid',
  REQUEST_BODY: 'Invalid',
  KUBELET_SILENT: 'Unavailable',
  STREAM_NO_POD: 'NotFound',
  STREAM_NO_CONTAINER: 'NotFound',
  STREAM_REFUSED: 'Failed',
  STREAM_BROKEN: 'Unavailable',
  SPDY_MALFORMED: 'Failed',
  SPDY_REFUSED: 'Failed',
  WEBSOCKET_MALFORMED: 'Invalid',
  KUBELET_LOOP_ENDED: 'Bug',
  POD_STILL_RUNS: 'Failed',
  POD_CGROUP_LOST: 'Failed',
  POD_NAME_HELD: 'Unavailable',
  NETWORK_NOT_READY: 'Unavailable',
  LOCK_HELD: 'Unavailable',
  HOME_UNUSABLE: 'Invalid',
  HOME_BUSY: 'Failed',
  NOT_ROOT: 'Denied',
  CONTAINERD_SOCKET_PATH: 'Invalid',
  CONTAINERD_SOCKET_TAKEN: 'Conflict',
  CONTAINERD_NOT_ROOT: 'Denied',
  CONTAINERD_TOOLS: 'Unsupported',
  CONTAINERD_VERSION: 'Unsupported',
  CONTAINERD_CONFIG: 'Invalid',
  CONTAINERD_SUBNET: 'Invalid',
  CONTAINERD_IMAGE: 'Invalid',
  CONTAINERD_IMPORT: 'Failed',
  CONTAINERD_RUNNING: 'Conflict',
  CONTAINERD_START: 'Failed',
  CONTAINERD_STOP: 'Failed',
  DURATION_INVALID: 'Invalid',
  FLAG_INVALID: 'Invalid',
  QUANTITY_INVALID: 'Invalid',
  FILE_NOT_FOUND: 'NotFound',
  FILE_CORRUPT: 'Invalid',
  FILE_READ: 'Failed',
  FILE_WRITE: 'Failed',
  LOG_LEVEL_INVALID: 'Invalid',
  LOG_REFUSED: 'Denied',
  LOGS_UNAVAILABLE: 'Failed',
  SOURCE_HTTP: 'Unavailable',
  POD_KILL_TIMEOUT: 'DeadlineExceeded',
  PLEG_EVENTS_ENDED: 'Unavailable',
  SANDBOX_CONFIG: 'Failed',
  USER_IDS: 'Invalid',
  CONTAINER_CONFIG: 'Failed',
  VOLUME_UNUSABLE: 'Failed',
  VOLUME_REMOVE: 'Failed',
  CGROUPS_UNUSABLE: 'Unsupported',
  CGROUP_DRIVER: 'Unsupported',
  CGROUP_NAME: 'Invalid',
  CGROUP_ROOT: 'Invalid',
  CGROUP_CREATE: 'Failed',
  CGROUP_UPDATE: 'Failed',
  CGROUP_BUSY: 'Failed',
  MACHINE_UNFIT: 'Unsupported',
  RESERVATION_TOO_LARGE: 'Invalid',
  POD_SYNC: 'Failed',
  POD_KILL: 'Failed',
  IMAGE_PULL_RATE: 'Unavailable',
  IMAGE_CREDENTIALS: 'Failed',
  CONTAINER_GC: 'Failed',
  CONTAINER_TARGET: 'NotFound',
  PROBE_UNASKABLE: 'Failed',
  HTTP_CUT_OFF: 'Failed',
  HTTP_NOT_TLS: 'Failed',
  HTTP_REDIRECTS: 'Failed',
  ACTION_PORT: 'Invalid',
  HOOK_FAILED: 'Failed',
  HOOK_UNKNOWN: 'Invalid',
  HOOK_NO_ADDRESS: 'Unavailable',
  NODE_SETTINGS: 'Invalid',
  NODE_ADDRESS: 'Unavailable',
  NODE_GONE: 'NotFound',
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errorKinds;
