import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outputCatalogue } from '../../../test/fakes/output-catalogue.ts';
import { createDocumentRoutes, createDocumentServer, createVersionInfo } from './public-routes.ts';

const sources = { kubernetes: 'v1.36.4', kubeling: '0.1.0', node: 'v26.1.0', platform: 'linux', arch: 'x64' };
const options = { catalogue: outputCatalogue(), version: createVersionInfo(sources) };
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

describe('document routes', () => {
  const routes = createDocumentRoutes(options);

  it('the version path returns the version', () => {
    assert.deepEqual(JSON.parse(routes('/version', undefined)?.body ?? ''), {
      major: '1',
      minor: '36',
      emulationMajor: '1',
      emulationMinor: '36',
      minCompatibilityMajor: '1',
      minCompatibilityMinor: '35',
      gitVersion: 'v1.36.4+kubeling.0.1.0',
      gitCommit: '',
      gitTreeState: '',
      buildDate: '1970-01-01T00:00:00Z',
      goVersion: 'node-v26.1.0',
      compiler: 'v8',
      platform: 'linux/amd64',
    });
  });

  it('returns no document for a path outside of discovery, OpenAPI and version', () => {
    for (const path of [
      '/',
      '/api/v2',
      '/apis/none',
      '/apis/policy/v2',
      '/openapi',
      '/openapi/v3/api',
      '/version/',
    ])
      assert.equal(routes(path, undefined), undefined, path);
  });

  it('discovery responses have their format in the content type', () => {
    for (const path of ['/api', '/apis']) {
      assert.equal(routes(path, `${aggregated},application/json`)?.contentType, aggregated);
      assert.equal(routes(path, 'application/json')?.contentType, 'application/json');
    }
    assert.equal(routes('/api/v1', aggregated)?.contentType, 'application/json');
  });

  it('the OpenAPI v2 document is empty', () => {
    const expected = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
    const empty = routes('/openapi/v2', expected);
    assert.equal(empty?.body, '');
    assert.equal(empty?.contentType, 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf');
    assert.equal(JSON.parse(routes('/openapi/v2', 'application/json')?.body ?? '').swagger, '2.0');
  });

  it('every path of the OpenAPI index returns a document under its hash', () => {
    const { paths } = JSON.parse(routes('/openapi/v3', undefined)?.body ?? '') as {
      paths: Record<string, { serverRelativeURL: string }>;
    };
    assert.ok('api/v1' in paths && 'apis/storage.k8s.io/v1' in paths);
    for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
      const document = routes(`/openapi/v3/${path}`, 'application/json');
      assert.equal(serverRelativeURL, `/openapi/v3/${path}?hash=${document?.etag}`);
      assert.equal(document?.body, routes(`/openapi/v3/${path}`, 'application/json')?.body);
    }
  });

  it('the ETag of a document is computed from its inputs', () => {
    const version = createVersionInfo({ ...sources, kubeling: '0.2.0' });
    const path = '/openapi/v3/api/v1';
    assert.notEqual(
      createDocumentRoutes({ ...options, version })(path, undefined)?.etag,
      routes(path, undefined)?.etag,
    );
    assert.equal(createDocumentRoutes(options)(path, undefined)?.etag, routes(path, undefined)?.etag);
  });
});

describe('document server', () => {
  const { document } = createDocumentServer(options);
  const ask = (path: string, more: { query?: string; ifNoneMatch?: string } = {}) =>
    document({
      path,
      query: new URLSearchParams(more.query),
      accept: undefined,
      ifNoneMatch: more.ifNoneMatch,
    });

  it('returns 304 for a request with a matching ETag', () => {
    const first = ask('/apis');
    assert.equal(first?.status, 200);
    assert.equal(first?.headers['Vary'], 'Accept');
    const etag = first?.headers['ETag'] ?? '';
    const again = ask('/apis', { ifNoneMatch: `"other", ${etag}` });
    assert.deepEqual([again?.status, again?.body, again?.headers['ETag']], [304, '', etag]);
    assert.equal(ask('/apis', { ifNoneMatch: '"other"' })?.status, 200);
  });

  it('allows caching of documents under their hash, and redirects requests with another hash', () => {
    const etag = (ask('/openapi/v3/api/v1')?.headers['ETag'] ?? '').replaceAll('"', '');
    const retained = ask('/openapi/v3/api/v1', { query: `hash=${etag}&timeout=32s` });
    assert.deepEqual([retained?.status, retained?.headers['Cache-Control']], [200, 'public, immutable']);
    const moved = ask('/openapi/v3/api/v1', { query: 'hash=0' });
    assert.deepEqual([moved?.status, moved?.headers['Location']], [301, `/openapi/v3/api/v1?hash=${etag}`]);
  });

  it('returns undefined for unknown paths', () => {
    assert.equal(ask('/metrics'), undefined);
  });
});
