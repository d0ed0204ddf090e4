import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { createCertificateRequest, newEcKey } from '../../../src/protocols/x509/index.ts';
import type { KeyPair } from '../../fakes/certificate-authority.ts';
import { ControlPlane } from '../control-plane.ts';
import { clusterAssets } from '../programs.ts';
import {
  discoveredPaths,
  openApiFacts,
  type RecordedOpenApi,
  withoutWords,
  writeRecorded,
} from './recorded.ts';
import { sampleObjects } from './sample-objects.ts';
import type { Sample } from './sample-pods.ts';

const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io';

interface Asked {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

class Recorder {
  readonly #plane: ControlPlane;
  readonly #admin: KeyPair;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#admin = plane.issue({ subject: '/O=system:masters/CN=recorder' });
  }

  async ask(method: string, path: string, options: { accept?: string; type?: string; body?: object } = {}) {
    const { accept = 'application/json', type = 'application/json', body } = options;
    const { promise, resolve, reject } = Promise.withResolvers<Asked>();
    const ca = readFileSync(this.#plane.ca);
    const sent = body === undefined ? '' : JSON.stringify(body);
    const headers = { accept, 'content-type': type, 'content-length': Buffer.byteLength(sent) };
    const call = request(
      `${this.#plane.serverUrl}${path}`,
      { method, headers, ca, ...this.#admin },
      (answer) => {
        const contentType = answer.headers['content-type'] ?? '';
        text(answer).then(
          (told) => resolve({ status: answer.statusCode ?? 0, contentType, body: told }),
          reject,
        );
      },
    );
    call.on('error', reject).end(sent);
    return await promise;
  }

  async make(path: string, { object, status, deleted }: Sample): Promise<void> {
    await this.#must('POST', path, object, 'application/json');
    const one = `${path}/${object.metadata.name}`;
    const isRequest = object['kind'] === 'CertificateSigningRequest';
    const failed = JSON.stringify(status ?? {}).includes('Failed');
    const part = isRequest && !failed ? 'approval' : 'status';
    if (status !== undefined)
      await this.#must('PATCH', `${one}/${part}`, { status }, 'application/merge-patch+json');
    if (deleted !== undefined) await this.#must('DELETE', one, {}, 'application/json');
  }

  async #must(method: string, path: string, body: object, type: string): Promise<void> {
    const response = await this.ask(method, path, { body, type });
    if (response.status >= 300)
      throw new Error(`Cannot ${method} ${path}: ${response.status} ${response.body}`);
  }

  /**
   * Tables contain ages in whole seconds, so the start and end of the request must lie within one
   * second.
   */
  async table(path: string): Promise<{ readonly nowMs: number; readonly table: object }> {
    for (;;) {
      const before = Date.now();
      const { status, body } = await this.ask('GET', `${path}?includeObject=Object`, { accept: tableType });
      if (status !== 200) throw new Error(`Cannot get ${path}: ${status} ${body}`);
      if (Math.floor(before / 1000) === Math.floor(Date.now() / 1000))
        return { nowMs: before, table: withoutWords(JSON.parse(body)) };
    }
  }
}

/**
 * Records the tables, discovery documents and OpenAPI documents of a real API server, with which
 * `src/local-api/output` is compared. Descriptions are removed, because kubeling writes its own.
 */
export async function recordOutput(): Promise<void> {
  await using plane = await ControlPlane.open(clusterAssets());
  const recorder = new Recorder(plane);
  await recorder.make('/api/v1/namespaces', {
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shown' } },
  });
  writeRecorded('tables', await tablesOf(recorder));
  writeRecorded('discovery', await discoveryOf(recorder));
  writeRecorded('openapi', await documentsOf(recorder));
}

async function tablesOf(recorder: Recorder): Promise<Readonly<Record<string, object>>> {
  const identity = { commonName: 'shown', organizations: [], dnsNames: [], ips: [] };
  const signingRequest = Buffer.from(createCertificateRequest(identity, newEcKey())).toString('base64');
  const tables: Record<string, object> = {};
  for (const [path, all] of Object.entries(sampleObjects(Date.now(), signingRequest))) {
    for (const sample of all) await recorder.make(path, sample);
    tables[path] = await recorder.table(path);
  }
  return tables;
}

async function discoveryOf(recorder: Recorder): Promise<Readonly<Record<string, object>>> {
  const discovery: Record<string, object> = {};
  for (const path of discoveredPaths) {
    const { body } = await recorder.ask('GET', path);
    discovery[path] = JSON.parse(body) as object;
  }
  const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  for (const path of ['/api', '/apis']) {
    const { body, contentType } = await recorder.ask('GET', path, { accept: aggregated });
    discovery[`aggregated ${path}`] = { contentType, body: JSON.parse(body) as object };
  }
  return discovery;
}

async function documentsOf(recorder: Recorder): Promise<Readonly<Record<string, RecordedOpenApi>>> {
  const openApi: Record<string, RecordedOpenApi> = {};
  for (const path of discoveredPaths.filter((each) => each.endsWith('/v1'))) {
    const { body } = await recorder.ask('GET', `/openapi/v3${path}`);
    openApi[path.slice(1)] = openApiFacts(JSON.parse(body) as Parameters<typeof openApiFacts>[0]);
  }
  return openApi;
}
