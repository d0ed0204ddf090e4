import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  forwardedHeaders,
  headerPairs,
  tunnelUpgrade,
  type UpgradingClient,
} from '../../protocols/upgrade/index.ts';
import type { StoredObject } from '../api/index.ts';
import type { StreamCall, StreamsDeps } from './deps.ts';
import { type KubeletEndpoint, requestKubelet } from './kubelet-dialer.ts';
import { assignedNode, containerOf, findTargetPod, kubeletOf } from './pod-target.ts';
import { badRequest } from './refusals.ts';

/** A client connection that requests an upgrade. */
export interface Upgrade extends UpgradingClient {
  readonly request: IncomingMessage;
}

/** The kubelet path of a streaming request, and the fields for the audit log. */
export interface StreamTarget {
  readonly address: KubeletEndpoint;
  readonly path: string;
  readonly pod: StoredObject;
  readonly container: string | undefined;
}

/** The names of stream parameters in the API and in the kubelet's query. */
const streamNames: readonly (readonly [string, string])[] = [
  ['stdin', 'input'],
  ['stdout', 'output'],
  ['stderr', 'error'],
  ['tty', 'tty'],
];

/** Validates the stream parameters. Throws a StatusError before the connection is upgraded. */
export function streamTarget(call: StreamCall, { objects, kubelet }: StreamsDeps): StreamTarget {
  const { subresource, query, name, namespace = '' } = call;
  const pod = findTargetPod(call, objects);
  const container = subresource === 'portforward' ? undefined : containerOf(pod, query.get('container'));
  const nodeName = assignedNode(pod);
  if (nodeName === undefined) throw badRequest(`pod ${name} does not have a host assigned`);
  const verb = subresource === 'portforward' ? 'portForward' : subresource;
  const parts = [namespace, name, ...(container === undefined ? [] : [container])];
  const path = `/${verb}/${parts.map(encodeURIComponent).join('/')}?${kubeletQuery(call)}`;
  return { address: kubeletOf(nodeName, objects, kubelet), path, pod, container };
}

function kubeletQuery({ subresource, query }: StreamCall): URLSearchParams {
  const forwarded = new URLSearchParams();
  if (subresource === 'portforward') {
    for (const ports of query.getAll('ports'))
      for (const port of ports.split(',')) forwarded.append('port', port);
    return forwarded;
  }
  for (const [ours, theirs] of streamNames) if (isOn(query.get(ours))) forwarded.set(theirs, '1');
  if (subresource === 'exec') for (const word of query.getAll('command')) forwarded.append('command', word);
  return forwarded;
}

function isOn(value: string | null): boolean {
  return value !== null && !['false', '0'].includes(value.toLowerCase());
}

/**
 * Forwards the client's upgrade request to the kubelet and tunnels both directions byte for byte.
 * If the kubelet responds with another status than 101, the client gets an error response, and the
 * connection is closed. Resolves with the status code when the stream has ended.
 */
export async function forwardUpgrade(
  target: Pick<StreamTarget, 'address' | 'path'>,
  upgrade: Upgrade,
  { kubelet, clock }: StreamsDeps,
  signal: AbortSignal,
): Promise<number> {
  const { method = 'GET', rawHeaders } = upgrade.request;
  const headers = [...forwardedHeaders(rawHeaders), ...(method === 'GET' ? [] : ['Content-Length', '0'])];
  const response = await requestKubelet(
    target.address,
    kubelet,
    { method, path: target.path, headers },
    clock,
    signal,
  );
  if (response.kind === 'answered') return await forwardError(response.response, upgrade.socket);
  await tunnelUpgrade(upgrade, response, { clock, idleMs: 0 }, signal);
  return 101;
}

/**
 * Forwards an error response of the kubelet; any other response, such as a redirect, becomes a 500.
 */
async function forwardError(response: IncomingMessage, socket: Duplex): Promise<number> {
  const { statusCode = 500, statusMessage = '', rawHeaders } = response;
  const status = statusCode >= 400 ? statusCode : 500;
  const dropped = ['connection', 'transfer-encoding', 'keep-alive'];
  const lines = headerPairs(rawHeaders)
    .filter(([name]) => !dropped.includes(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${statusMessage}\r\n${lines.join('')}Connection: close\r\n\r\n`);
  await pipeline(response, socket).catch(() => socket.destroy());
  return status;
}
