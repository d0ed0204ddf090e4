import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { AuditedCall } from './audit-log.ts';

/** Of each request that a server of this process is sent, before it is looked at. */
const begun = 'http.server.request.start';

interface Begun {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Notes down what nodes ask of the HTTPS servers of this process, in the words of the real API server's log: who it
 * is goes by the certificate of the connection.
 */
export function recordCalls(file: string): void {
  let requestCount = 0;
  appendFileSync(file, '');
  subscribe(begun, (message) => {
    const { request, response } = message as Begun;
    if (!isNode(request.socket as TLSSocket)) return;
    requestCount++;
    const call = callOf(request, `${process.pid}-${requestCount}`);
    const note = (stage: AuditedCall['stage']) =>
      appendFileSync(
        file,
        `${JSON.stringify({ ...call, stage, responseStatus: { code: response.statusCode } })}\n`,
      );
    if (call.verb === 'watch') {
      const { writeHead } = response;
      response.writeHead = ((...args: Parameters<typeof writeHead>) => {
        const written = Reflect.apply(writeHead, response, args);
        note('ResponseStarted');
        return written;
      }) as typeof writeHead;
    }
    response.once('close', () => note('ResponseComplete'));
  });
}

function isNode(socket: TLSSocket): boolean {
  const groups = socket.getPeerCertificate?.()?.subject?.O;
  return [groups].flat().includes('system:nodes');
}

const verbs: Readonly<Record<string, string>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

function callOf({ method = '', url = '' }: IncomingMessage, auditID: string): Omit<AuditedCall, 'stage'> {
  const { pathname, searchParams } = new URL(url, 'https://server');
  const { name, ...objectRef } = objectAt(pathname);
  const reading = searchParams.get('watch') === null ? (name === undefined ? 'list' : 'get') : 'watch';
  return {
    auditID,
    verb: verbs[method] ?? reading,
    requestURI: url,
    objectRef: { ...objectRef, ...(name === undefined ? {} : { name }) },
  };
}

/** `/api/v1/...` or `/apis/GROUP/VERSION/...`, then perhaps a namespace, then resource, name and subresource. */
function objectAt(pathname: string): NonNullable<AuditedCall['objectRef']> {
  const [first, ...rest] = pathname.split('/').slice(1);
  const inGroup = rest.slice(first === 'apis' ? 2 : 1);
  const isInside = inGroup[0] === 'namespaces' && inGroup.length > 2;
  const [resource, name, subresource] = isInside ? inGroup.slice(2) : inGroup;
  return {
    ...(resource === undefined ? {} : { resource }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}
