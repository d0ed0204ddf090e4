import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { accessSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { StoredObject } from '../../src/local-api/api/index.ts';
import { asTable, createDocumentServer, createVersionInfo } from '../../src/local-api/output/index.ts';
import { readRecorded } from '../cluster/output/recorded.ts';
import { outputCatalogue } from '../fakes/output-catalogue.ts';

interface Recorded {
  readonly nowMs: number;
  readonly table: { readonly rows: readonly { readonly object: StoredObject }[] };
}

interface Said {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function kubectlPath(): string | undefined {
  const dirs = (process.env['PATH'] ?? '').split(delimiter);
  return dirs
    .map((dir) => join(dir, 'kubectl'))
    .find((path) => {
      try {
        accessSync(path);
        return true;
      } catch {
        return false;
      }
    });
}

/**
 * A fake API server that serves the published documents and recorded responses, and returns a
 * written object as it was sent.
 */
class CannedServer implements AsyncDisposable {
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly #folder: string;
  readonly #catalogue = outputCatalogue();
  readonly #recorded = readRecorded<Recorded>('tables');
  readonly #pages = createDocumentServer({
    catalogue: this.#catalogue,
    version: createVersionInfo({
      kubernetes: 'v1.36.4',
      kubeling: '0.1.0',
      node: process.version,
      platform: process.platform,
      arch: process.arch,
    }),
  });

  static async open(): Promise<CannedServer> {
    const folder = await mkdtemp(join(tmpdir(), 'klg-kubectl-'));
    const server = new CannedServer(folder);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => {
      this.#answer(request).then(
        ({ status, headers, body }) => response.writeHead(status, headers).end(body),
        (error: unknown) => response.destroy(error as Error),
      );
    });
  }

  async kubectl(...args: readonly string[]): Promise<Said> {
    const { port } = this.#server.address() as AddressInfo;
    const env = { PATH: process.env['PATH'], HOME: this.#folder, KUBECACHEDIR: join(this.#folder, 'cache') };
    const { promise, resolve } = Promise.withResolvers<Said>();
    const all = [`--server=http://127.0.0.1:${port}`, ...args];
    execFile('kubectl', all, { env, timeout: 60_000 }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), out, err });
    });
    return await promise;
  }

  async file(name: string, object: object): Promise<string> {
    const path = join(this.#folder, name);
    await writeFile(path, JSON.stringify(object));
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #answer(
    request: IncomingMessage,
  ): Promise<{ status: number; headers: Record<string, string>; body: string }> {
    const url = new URL(request.url ?? '/', 'http://server.test');
    this.asked.push(`${request.method} ${url.pathname}`);
    const { accept } = request.headers;
    const page = this.#pages.document({
      path: url.pathname,
      query: url.searchParams,
      accept,
      ifNoneMatch: request.headers['if-none-match'],
    });
    if (page !== undefined) return { ...page, headers: { ...page.headers } };
    const headers = { 'Content-Type': 'application/json' };
    const sent = await text(request);
    if (request.method !== 'GET') return { status: 201, headers, body: sent };
    const found = this.#tableOf(url.pathname);
    const missing = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 };
    const status = found === undefined ? 404 : 200;
    return {
      status,
      headers,
      body: JSON.stringify(found ?? { ...missing, message: 'not found', metadata: {} }),
    };
  }

  #tableOf(path: string): object | undefined {
    const recorded = this.#recorded[path];
    const plural = path.split('/').at(-1);
    const entry = this.#catalogue.all.find(({ resource }) => resource.plural === plural);
    if (recorded === undefined || entry === undefined) return undefined;
    const objects = recorded.table.rows.map(({ object }) => object);
    const metadata = { resourceVersion: '1' };
    return asTable(entry, objects, {
      metadata,
      includeObject: 'Metadata',
      nowMs: recorded.nowMs,
      columns: 'with',
    });
  }
}

describe("kubectl against the embedded API's documents", {
  skip: kubectlPath() === undefined ? 'kubectl is not on the PATH' : false,
}, () => {
  let server: CannedServer;
  before(async () => {
    server = await CannedServer.open();
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
  });

  const must = async (...args: readonly string[]) => {
    const { code, out, err } = await server.kubectl(...args);
    assert.equal(code, 0, err);
    return out;
  };
  const cells = (line: string | undefined) => (line ?? '').split(/\s{2,}/);

  it('kubectl version reports the server version', async () => {
    assert.match(await must('version'), /Server Version: v1\.36\.4\+kubeling\.0\.1\.0/);
  });

  it('kubectl api-resources lists all resources with their short names', async () => {
    const lines = (await must('api-resources', '--no-headers', '--output=wide')).trim().split('\n');
    assert.equal(lines.length, outputCatalogue().all.length);
    const pods = lines.find((line) => line.startsWith('pods '));
    assert.deepEqual(cells(pods), [
      'pods',
      'po',
      'v1',
      'true',
      'Pod',
      'create,delete,deletecollection,get,list,patch,update,watch',
      'all',
    ]);
  });

  it('kubectl explain describes a field and all its fields', async () => {
    const spec = await must('explain', 'pod.spec', '--recursive');
    assert.match(spec, /^KIND: +Pod\nVERSION: +v1\n\nFIELD: spec <PodSpec>/);
    assert.match(spec, /\n {2}containers\t<\[\]Container> -required-\n {4}args\t<\[\]string>\n/);
    assert.match(spec, /\n {6}httpGet\t<HTTPGetAction>\n/);
    const probe = await must('explain', 'po.spec.containers.livenessProbe.periodSeconds');
    assert.match(probe, /FIELD: periodSeconds <integer>\n/);
    assert.match(probe, /10 by default\./);
    const policy = await must('explain', 'pods.spec.restartPolicy');
    assert.match(policy, /FIELD: restartPolicy <string>\nENUM:\n {4}Always\n {4}Never\n {4}OnFailure\n/);
    assert.match(await must('explain', 'storageclasses'), /GROUP: +storage\.k8s\.io\nKIND: +StorageClass/);
  });

  it('kubectl explain reports a field that does not exist', async () => {
    const { code, err } = await server.kubectl('explain', 'pod.spec.nonsense');
    assert.equal(code, 1);
    assert.match(err, /field "nonsense" does not exist/);
  });

  it('kubectl create detects support for server-side field validation before it creates objects from a file', async () => {
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: '1' } };
    const path = await server.file('config-map.json', configMap);
    assert.equal(await must('create', '-f', path), 'configmap/a created\n');
    assert.ok(server.asked.includes('GET /openapi/v3'));
    assert.ok(server.asked.includes('GET /openapi/v3/api/v1'));
    assert.ok(server.asked.includes('POST /api/v1/namespaces/default/configmaps'));
    assert.ok(!server.asked.includes('GET /openapi/v2'));
  });

  it('kubectl create accepts a list in a file, for which it reads the OpenAPI v2 document', async () => {
    const items = ['a', 'b'].map((name) => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name } }));
    const path = await server.file('list.json', { apiVersion: 'v1', kind: 'List', items });
    assert.equal(await must('create', '-f', path), 'secret/a created\nsecret/b created\n');
    assert.ok(server.asked.includes('GET /openapi/v2'));
  });

  it('kubectl get pods shows pods in all their states', async () => {
    const lines = (await must('get', 'pods', '-n', 'shown', '-o', 'wide')).trim().split('\n');
    assert.match(
      lines[0] ?? '',
      /^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES$/,
    );
    const row = (name: string) => cells(lines.find((line) => line.startsWith(`${name} `)));
    assert.deepEqual(row('crash-loop').slice(0, 4), ['crash-loop', '0/1', 'CrashLoopBackOff', '7 (66m ago)']);
    assert.equal(row('init-second')[2], 'Init:1/2');
    assert.equal(row('terminating')[2], 'Terminating');
    assert.equal(row('running')[5], '10.1.2.3');
    const narrow = await must('get', 'po', '-n', 'shown');
    assert.match(narrow, /^NAME +READY +STATUS +RESTARTS +AGE\n/);
  });

  it('kubectl get shows several kinds in one call', async () => {
    const out = await must('get', 'cm,secrets,svc,ep,pvc,leases', '-n', 'shown');
    assert.match(out, /^NAME +DATA +AGE\nconfigmap\/both +3 /);
    assert.match(out, /\nNAME +TYPE +DATA +AGE\nsecret\/opaque +Opaque +2 /);
    assert.match(out, /\nservice\/nodeport +NodePort +[\d.]+ +203\.0\.113\.9 +80:30123\/TCP /);
    assert.match(out, /\nlease\.coordination\.k8s\.io\/held +node-a /);
  });

  it('kubectl get shows nodes, events and cluster-scoped resources', async () => {
    assert.match(await must('get', 'no'), /\nready +Ready +control-plane,edge,worker +\d+s +v1\.36\.4\n/);
    assert.match(await must('get', 'events', '-n', 'shown'), /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n/);
    assert.match(
      await must('get', 'csr'),
      /\napproved +\d+s +example\.test\/signer +recorder +<none> +Approved\n/,
    );
    assert.match(
      await must('get', 'sc'),
      /\nquick \(default\) +example\.test\/disk +Delete +Immediate +false /,
    );
  });
});
