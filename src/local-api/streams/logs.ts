import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { serveWebSocket } from '../../protocols/upgrade/index.ts';
import { handshakeProblem, offeredProtocols } from '../../protocols/websocket/index.ts';
import { internalError } from '../api/index.ts';
import type { Upgrade } from './commands.ts';
import type { StreamCall, StreamsDeps } from './deps.ts';
import { requestKubelet } from './kubelet-dialer.ts';
import { logQuery } from './log-query.ts';
import { assignedNode, containerOf, findTargetPod, kubeletOf } from './pod-target.ts';
import { badRequest, kubeletError } from './refusals.ts';

const maxRefusalBytes = 2_048;

/** Sends a pod log as plain text; the log of an unscheduled pod is empty. */
export async function answerLog(
  call: StreamCall,
  response: ServerResponse,
  deps: StreamsDeps,
  signal: AbortSignal,
): Promise<void> {
  const log = await openLog(call, deps, signal);
  if (log === undefined) {
    response.writeHead(204).end();
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  response.flushHeaders();
  // Reads the log at the speed of the client; an error of the client or the kubelet ends both
  // connections.
  await pipeline(log, response, { signal }).catch(() => log.destroy());
}

/**
 * Sends the log over a WebSocket. The first message is empty, so that clients detect that the
 * connection is open.
 */
export async function upgradeLog(
  call: StreamCall,
  client: Upgrade,
  deps: StreamsDeps,
  signal: AbortSignal,
): Promise<void> {
  const { headers, method = 'GET' } = client.request;
  const problem = handshakeProblem({ method, headers });
  if (problem !== undefined) throw badRequest(problem.message);
  const protocol = chosenProtocol(offeredProtocols(headers));
  const log = (await openLog(call, deps, signal)) ?? Readable.from([]);
  const isText = protocol.startsWith('base64.');
  const encode = (bytes: Buffer) => (isText ? Buffer.from(bytes.toString('base64')) : bytes);
  try {
    await serveWebSocket(
      { ...client, headers },
      protocol,
      { clock: deps.clock, idleMs: 0 },
      async ({ connection, signal: inner }) => {
        const send = (bytes: Buffer) =>
          isText ? connection.sendText(inner, bytes) : connection.send(inner, bytes);
        const write = async () => {
          await send(Buffer.alloc(0));
          for await (const chunk of log as AsyncIterable<Buffer>) await send(encode(chunk));
        };
        // When the client closes the WebSocket, reading the log is aborted.
        await Promise.race([write(), drain(connection.messages())]);
      },
      signal,
    );
  } finally {
    log.destroy();
  }
}

/** Discards the client's messages; they must be read so that pings and the close are handled. */
async function drain(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

/** A client that offers no WebSocket protocol gets the log as plain bytes. */
function chosenProtocol(all: readonly string[]): string {
  const known = ['binary.k8s.io', 'base64.binary.k8s.io', ''];
  if (all.length === 0) return '';
  const chosen = all.find((each) => known.includes(each));
  if (chosen === undefined) throw badRequest(`none of the protocols ${all.join(', ')} is supported`);
  return chosen;
}

/**
 * The log response of the kubelet; undefined for an unscheduled pod. Throws the kubelet's error
 * with its status code.
 */
async function openLog(
  call: StreamCall,
  deps: StreamsDeps,
  signal: AbortSignal,
): Promise<IncomingMessage | undefined> {
  const { name, namespace = '' } = call;
  const query = logQuery(call.query, name);
  const pod = findTargetPod(call, deps.objects);
  const container = containerOf(pod, call.query.get('container'));
  const nodeName = assignedNode(pod);
  if (nodeName === undefined) return undefined;
  const address = kubeletOf(nodeName, deps.objects, deps.kubelet);
  const path = `/containerLogs/${[namespace, name, container].map(encodeURIComponent).join('/')}?${query}`;
  const request = { method: 'GET', path, headers: [] };
  const answer = await requestKubelet(address, deps.kubelet, request, deps.clock, signal);
  if (answer.kind === 'upgraded') {
    answer.socket.destroy();
    throw internalError('the kubelet responded to a log request with an upgrade');
  }
  const { response } = answer;
  const { statusCode: status = 500 } = response;
  if (status >= 200 && status <= 206) return response;
  throw kubeletError(status, await readError(response), { kind: 'pods/log', name });
}

async function readError(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= maxRefusalBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maxRefusalBytes).toString();
}
