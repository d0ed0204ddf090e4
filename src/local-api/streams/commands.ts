import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { StoredObject } from '../core/index.ts';
import type { StreamCall, StreamsDeps } from './deps.ts';
import { askKubelet, type KubeletPlace } from './kubelet-door.ts';
import { containerOf, kubeletOf, nodeNameOf, podOf } from './pod-target.ts';
import { badRequest } from './refusals.ts';
import { pairs, passedHeaders, switchingHead } from './upgrade-headers.ts';

/** A connection that is to become a stream. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Uint8Array;
}

/** Where at the kubelet the stream of a call is, and what of it is worth a line in the log. */
export interface StreamTarget {
  readonly place: KubeletPlace;
  readonly path: string;
  readonly pod: StoredObject;
  readonly container: string | undefined;
}

/** What clients call the streams of a command, and what kubelets call them. */
const streamNames: readonly (readonly [string, string])[] = [
  ['stdin', 'input'],
  ['stdout', 'output'],
  ['stderr', 'error'],
  ['tty', 'tty'],
];

/** Throws a Status for what cannot be: nothing is switched before. */
export function streamTarget(call: StreamCall, { objects, kubelet }: StreamsDeps): StreamTarget {
  const { subresource, query, name, namespace = '' } = call;
  const pod = podOf(call, objects);
  const container = subresource === 'portforward' ? undefined : containerOf(pod, query.get('container'));
  const nodeName = nodeNameOf(pod);
  if (nodeName === undefined) throw badRequest(`pod ${name} does not have a host assigned`);
  const verb = subresource === 'portforward' ? 'portForward' : subresource;
  const parts = [namespace, name, ...(container === undefined ? [] : [container])];
  const path = `/${verb}/${parts.map(encodeURIComponent).join('/')}?${kubeletQuery(call)}`;
  return { place: kubeletOf(nodeName, objects, kubelet), path, pod, container };
}

function kubeletQuery({ subresource, query }: StreamCall): URLSearchParams {
  const passed = new URLSearchParams();
  if (subresource === 'portforward') {
    for (const ports of query.getAll('ports'))
      for (const port of ports.split(',')) passed.append('port', port);
    return passed;
  }
  for (const [ours, theirs] of streamNames) if (isOn(query.get(ours))) passed.set(theirs, '1');
  if (subresource === 'exec') for (const word of query.getAll('command')) passed.append('command', word);
  return passed;
}

function isOn(value: string | null): boolean {
  return value !== null && !['false', '0'].includes(value.toLowerCase());
}

/**
 * Passes an upgrade on to the kubelet byte for byte. Only a switch of protocols opens the way: after any other answer the
 * client gets that answer and the connection is closed, as bytes behind a refused upgrade would reach the kubelet with our
 * rights. Resolves with the status that was answered, once all is over.
 */
export async function passUpgrade(
  target: Pick<StreamTarget, 'place' | 'path'>,
  { request, socket, head }: Upgrade,
  { kubelet, clock, sockets }: StreamsDeps,
  signal: AbortSignal,
): Promise<number> {
  const { method = 'GET', rawHeaders } = request;
  const headers = [...passedHeaders(rawHeaders), ...(method === 'GET' ? [] : ['Content-Length', '0'])];
  const answer = await askKubelet(
    target.place,
    kubelet,
    { method, path: target.path, headers },
    clock,
    signal,
  );
  if (answer.kind === 'answered') return await passRefusal(answer.response, socket);
  socket.write(switchingHead(answer.rawHeaders));
  if (answer.head.length > 0) socket.write(answer.head);
  if (head.length > 0) answer.socket.write(head);
  await sockets.relay(socket, answer.socket, signal);
  return 101;
}

/** Redirects are nobody's to follow: what is no error is made one. */
async function passRefusal(response: IncomingMessage, socket: Duplex): Promise<number> {
  const { statusCode = 500, statusMessage = '', rawHeaders } = response;
  const status = statusCode >= 400 ? statusCode : 500;
  const dropped = ['connection', 'transfer-encoding', 'keep-alive'];
  const lines = pairs(rawHeaders)
    .filter(([name]) => !dropped.includes(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${statusMessage}\r\n${lines.join('')}Connection: close\r\n\r\n`);
  await pipeline(response, socket).catch(() => socket.destroy());
  return status;
}
