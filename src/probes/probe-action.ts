import type { Container, Probe } from '../kinds/index.ts';
import { KubelingError } from '../lib/index.ts';
import { actionPort, actionRequest } from '../pods/index.ts';
import { type ProbeAction, userAgent } from './probe-request.ts';

/** Inputs of an action besides the probe. */
export interface ActionTarget {
  readonly container: Container;
  /** Empty while the pod has no address. */
  readonly podIp: string;
  /** Expands variable references in a command. */
  readonly expand: (command: readonly string[], container: Container) => readonly string[];
}

/** Throws when the probe cannot be sent, which does not show the container's health. */
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

/** An empty host would select this node. */
function hostOf(given: string | undefined, podIp: string): string {
  const host = given === undefined || given === '' ? podIp : given;
  if (host === '') throw unaskable('the pod has no address yet');
  return host;
}

function unaskable(why: string): KubelingError {
  return new KubelingError('PROBE_UNASKABLE', why);
}
