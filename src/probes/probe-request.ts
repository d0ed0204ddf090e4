import type { Container, Probe } from '../kinds/index.ts';
import type { HttpRequest } from '../lib/index.ts';
import { KubelingError } from '../lib/index.ts';
import type { PodUid } from '../pods/index.ts';
import { actionPort, actionRequest } from '../pods/index.ts';

export type ProbeType = 'liveness' | 'readiness' | 'startup';

export const probeTypes: readonly ProbeType[] = ['startup', 'readiness', 'liveness'];

/** The name of the probe type in events and metrics. */
export function typeName(type: ProbeType): 'Liveness' | 'Readiness' | 'Startup' {
  return type === 'liveness' ? 'Liveness' : type === 'readiness' ? 'Readiness' : 'Startup';
}

export interface HttpAction {
  readonly kind: 'http';
  readonly request: HttpRequest;
}

export interface TcpAction {
  readonly kind: 'tcp';
  readonly host: string;
  readonly port: number;
}

export interface GrpcAction {
  readonly kind: 'grpc';
  readonly host: string;
  readonly port: number;
  readonly service: string;
}

export interface ExecAction {
  readonly kind: 'exec';
  readonly command: readonly string[];
}

export type ProbeAction = HttpAction | TcpAction | GrpcAction | ExecAction;

/** A probe of one container, with its timeout. */
export interface ProbeRequest<Action extends ProbeAction = ProbeAction> {
  readonly type: ProbeType;
  readonly podUid: PodUid;
  readonly podName: string;
  readonly podNamespace: string;
  readonly container: string;
  /** The container ID of the runtime, without the scheme. */
  readonly containerId: string;
  readonly action: Action;
  readonly timeoutMs: number;
}

/** A warning counts as success and is recorded as an event. */
export interface ProbeResponse {
  readonly is: 'success' | 'failure' | 'warning';
  readonly output: string;
}

/**
 * Probes a container. Responds within the request's timeout; rejects only when the probe could not
 * be sent, which does not show the container's health. A connection failure is a probe failure.
 */
export interface Prober {
  probe(question: ProbeRequest, signal: AbortSignal): Promise<ProbeResponse>;
}

export const maxOutputBytes = 10 * 1024;

export const userAgent = 'kube-probe/1.36';

export function failure(output: string): ProbeResponse {
  return { is: 'failure', output };
}

/** The inputs of a probe request besides the probe itself. */
export interface ActionTarget {
  readonly container: Container;
  /** The IP address of the pod; empty while it has none. */
  readonly podIp: string;
  /** Expands variable references in a probe command. */
  readonly expand: (command: readonly string[], container: Container) => readonly string[];
}

/**
 * Creates the request of a probe. Throws when the probe cannot be sent, which does not show the
 * container's health.
 */
export function probeAction(probe: Probe, target: ActionTarget): ProbeAction {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  const { container, podIp, expand } = target;
  if (exec !== undefined) {
    return { kind: 'exec', command: expand(exec.command ?? [], container) };
  }
  if (httpGet !== undefined) {
    hostOf(httpGet.host, podIp);
    return { kind: 'http', request: actionRequest(httpGet, container, podIp, userAgent) };
  }
  if (tcpSocket !== undefined) {
    return { kind: 'tcp', host: hostOf(tcpSocket.host, podIp), port: actionPort(tcpSocket.port, container) };
  }
  if (grpc !== undefined) {
    return { kind: 'grpc', host: hostOf(undefined, podIp), port: grpc.port, service: grpc.service ?? '' };
  }
  throw unaskable(`missing probe handler for ${container.name}`);
}

/** A probe without a host needs the pod's address, because an empty host would select this node. */
function hostOf(given: string | undefined, podIp: string): string {
  const host = given === undefined || given === '' ? podIp : given;
  if (host === '') throw unaskable('the pod has no address yet');
  return host;
}

function unaskable(why: string): KubelingError {
  return new KubelingError('PROBE_UNASKABLE', why);
}
