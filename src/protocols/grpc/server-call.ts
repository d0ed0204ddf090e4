import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { describeError } from '../../lib/index.ts';
import { GrpcMessageReader, grpcFrame } from './frames.ts';
import { parseTimeout } from './request-headers.ts';
import type { CallOptions, MethodType } from './service.ts';
import { encodeStatusMessage, GrpcError, numberOfGrpcCode } from './status.ts';

export interface MethodRoute {
  readonly path: string;
  readonly method: MethodType;
  readonly call: (request: unknown, options: CallOptions) => unknown;
}

/**
 * Serves one call. Rejects with an unexpected error of the implementation, which is a bug; the
 * client has received its status by then.
 */
export async function serveCall(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  route: MethodRoute,
  maxReceiveBytes: number,
): Promise<void> {
  const controller = new AbortController();
  const cancel = () => controller.abort(new GrpcError('CANCELLED', 'The client has cancelled the call'));
  stream.on('close', cancel);
  try {
    const body = await receive(stream, maxReceiveBytes);
    const request = decodeRequest(route.method, body);
    const timeoutMs = parseTimeout(headers['grpc-timeout']);
    await respond(stream, route.method, route.call(request, { signal: controller.signal, timeoutMs }));
    finish(stream, undefined);
  } catch (error) {
    finish(stream, asGrpcError(error));
    if (!(error instanceof GrpcError) && !controller.signal.aborted) throw error;
  } finally {
    stream.off('close', cancel);
  }
}

/** Responds with a status only; the remaining request is discarded. */
export function rejectCall(stream: ServerHttp2Stream, error: GrpcError): void {
  if (stream.closed || stream.destroyed) return;
  stream.respond({ ...responseHeaders, ...trailersOf(error) }, { endStream: true });
  stream.resume();
}

/**
 * Reads the only message of the request. Never settles if the client cancels the call before the
 * message is complete.
 */
function receive(stream: ServerHttp2Stream, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const reader = new GrpcMessageReader(limit);
    const messages: Buffer[] = [];
    const fail = (error: unknown) => {
      stream.off('data', receive);
      reject(error);
    };
    const receive = (chunk: Buffer) => {
      try {
        messages.push(...reader.push(chunk));
        if (messages.length > 1) fail(new GrpcError('INTERNAL', 'The request has more than one message'));
      } catch (error) {
        fail(error);
      }
    };
    stream.on('data', receive);
    stream.on('end', () => {
      const [body] = messages;
      if (body !== undefined && !reader.hasPartialMessage) resolve(body);
      else reject(new GrpcError('INTERNAL', 'The request ended before its message'));
    });
    stream.on('close', () => reject(new GrpcError('CANCELLED', 'The client has cancelled the call')));
  });
}

async function respond(stream: ServerHttp2Stream, method: MethodType, result: unknown): Promise<void> {
  if (method.kind === 'unary') await send(stream, method, await result);
  else for await (const item of result as AsyncIterable<unknown>) await send(stream, method, item);
}

/**
 * Sends one message. If the send buffer is full, waits until it is drained or the client has
 * disconnected.
 */
async function send(stream: ServerHttp2Stream, method: MethodType, message: unknown): Promise<void> {
  const body = grpcFrame((method.response.encode as (message: unknown) => Buffer)(message));
  if (stream.closed || stream.destroyed)
    throw new GrpcError('CANCELLED', 'The client has cancelled the call');
  if (!stream.headersSent) stream.respond(responseHeaders, { waitForTrailers: true });
  if (stream.write(body)) return;
  await new Promise<void>((resolve) => {
    const start = () => {
      stream.off('drain', start);
      stream.off('close', start);
      resolve();
    };
    stream.on('drain', start);
    stream.on('close', start);
  });
}

const responseHeaders = { ':status': 200, 'content-type': 'application/grpc' };

function finish(stream: ServerHttp2Stream, error: GrpcError | undefined): void {
  if (stream.closed || stream.destroyed) return;
  if (error !== undefined && !stream.headersSent) {
    rejectCall(stream, error);
    return;
  }
  if (!stream.headersSent) stream.respond(responseHeaders, { waitForTrailers: true });
  stream.on('wantTrailers', () => {
    if (!stream.closed && !stream.destroyed) stream.sendTrailers(trailersOf(error));
  });
  stream.end();
}

function trailersOf(error: GrpcError | undefined): Record<string, string> {
  if (error === undefined) return { 'grpc-status': '0' };
  return {
    'grpc-status': String(numberOfGrpcCode(error.grpcCode)),
    'grpc-message': encodeStatusMessage(error.message),
  };
}

function decodeRequest(method: MethodType, body: Buffer): unknown {
  try {
    return method.request.decode(body);
  } catch (cause) {
    throw new GrpcError('INTERNAL', `Cannot read the request of ${method.name}: ${String(cause)}`, cause);
  }
}

function asGrpcError(error: unknown): GrpcError {
  return error instanceof GrpcError ? error : new GrpcError('UNKNOWN', describeError(error), error);
}
