import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CertificateFolder } from '../../fakes/certificate-authority.ts';
import {
  bearer,
  type Credential,
  type Endpoint,
  encodedToken,
  endpoints,
  nameOf,
  optionsOf,
} from '../../fakes/endpoint-matrix.ts';
import { type Answer, call } from '../../fakes/tls-node.ts';
import { accessTo, serviceAccount } from '../cluster-access.ts';
import type { ClusterNode } from '../cluster-node.ts';
import { pod } from '../cluster-pods.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { SmallCluster } from '../small-cluster.ts';
import type { Place } from './place.ts';

/**
 * Returns the expected status for an authorized client; a node with a real runtime returns other
 * statuses than the endpoint matrix for some endpoints.
 */
function statusOf({ path, upgrade, status }: Endpoint): number {
  if (path.startsWith('/containerLogs/')) return 200;
  if (path === '/logs/sys.log') return 404;
  // The runtime of the test does not support checkpoints of containers.
  if (path.startsWith('/checkpoint/')) return 500;
  return upgrade !== undefined && status === 500 ? 101 : status;
}

/** Which endpoints are requested, and how many concurrently. */
interface Asking {
  readonly among?: readonly Endpoint[];
  readonly atOnce?: number;
}

/** Tests every path of a node's server with every kind of client. */
export function authorizationMatrix(place: Place): void {
  describe(`authorization of requests to a node of ${place.name}`, {
    skip: place.skip,
    timeout: 600_000,
  }, () => {
    let cluster: SmallCluster;
    let plane: ControlPlane;
    let node: ClusterNode;
    let strangers: CertificateFolder;

    before(async () => {
      cluster = await place.open({ node: { config: { enableSystemLogQuery: true } } });
      ({ plane, node } = cluster);
      strangers = new CertificateFolder();
      await plane.make(pod('web'), ...['operator', 'nobody', 'later'].map(serviceAccount), ...roles());
      await node.reachable();
      await cluster.ready('web');
    });

    after(async () => {
      strangers?.[Symbol.dispose]();
      await plane?.kubectl(
        'delete',
        'pod/web',
        ...['operator', 'nobody', 'later'].map((name) => `sa/${name}`),
      );
      await place.close(cluster);
    });

    /** Without RBAC roles only cluster administrators are authorized. */
    const roles = () =>
      place.lacks('roles') !== false
        ? []
        : [
            ...accessTo('everything', ['*'], ['*'], 'alice', 'operator'),
            ...accessTo('metrics', ['get'], ['nodes/metrics'], 'scraper'),
            ...accessTo('reading', ['get'], ['nodes/proxy'], 'reader'),
            ...accessTo('late', ['*'], ['*'], 'lena', 'later'),
          ];
    const mayAll = (user: string) =>
      plane.issue({
        subject: `/O=${place.lacks('roles') === false ? 'people' : 'system:masters'}/CN=${user}`,
      });
    const certificateOf = (user: string) => plane.issue({ subject: `/O=people/CN=${user}` });
    const tokenOf = async (account: string, ...more: readonly string[]) =>
      (await plane.kubectl('create', 'token', account, ...more)).trim();

    /** Requests all endpoints, a few of them concurrently. */
    async function askAll(
      credential: Credential,
      judge: (endpoint: Endpoint, response: Answer) => void,
      { among = endpoints, atOnce = 8 }: Asking = {},
    ): Promise<void> {
      const left = [...among];
      const ask = async () => {
        for (let endpoint = left.shift(); endpoint !== undefined; endpoint = left.shift()) {
          judge(endpoint, await call(node, endpoint.path, optionsOf(endpoint, credential)));
        }
      };
      await Promise.all(Array.from({ length: atOnce }, ask));
    }

    async function strangersShow(): Promise<Readonly<Record<string, Credential>>> {
      const real = await tokenOf('operator');
      const [head = '', body = '', seal = ''] = real.split('.');
      const masters = '/O=system:masters/CN=admin';
      return {
        'no credential': {},
        'a certificate of another authority of the same name': strangers
          .authority('/CN=kubernetes')
          .issue({ subject: masters }),
        'a certificate that has expired': plane.issue({ subject: masters, days: -1 }),
        'a certificate for servers': plane.issue({ subject: masters, use: 'serverAuth' }),
        'a token that was never issued': bearer('guess'),
        'a token whose seal is not right': bearer(`${head}.${body}.${[...seal].reverse().join('')}`),
        'a token for another audience': bearer(await tokenOf('operator', '--audience=elsewhere')),
        'a wrong token among protocols': {
          headers: { 'sec-websocket-protocol': `v4.channel.k8s.io, ${encodedToken('guess')}` },
        },
      };
    }

    it('rejects requests without valid credentials with 401 on every endpoint', async () => {
      for (const [shown, credential] of Object.entries(await strangersShow())) {
        await askAll(credential, (endpoint, { status, body }) =>
          assert.equal(`${status} ${body}`, '401 Unauthorized', `${nameOf(endpoint)} with ${shown}`),
        );
      }
    });

    it('rejects an authenticated client without permissions with 403 and the missing permissions', async () => {
      const account = 'system:serviceaccount:default:nobody';
      const shown = [
        ['mallory', certificateOf('mallory')],
        [account, bearer(await tokenOf('nobody'))],
      ] as const;
      for (const [user, credential] of shown) {
        await askAll(credential, (endpoint, { status, body }) => {
          const needs = `subresource(s)=[${endpoint.subresources.join(' ')}]`;
          const expected = `Forbidden (user=${user}, verb=${endpoint.verb}, resource=nodes, ${needs})\n`;
          assert.equal(`${status} ${body}`, `403 ${expected}`, nameOf(endpoint));
        });
      }
    });

    it('accepts an administrator by certificate, by token and by a token in a WebSocket subprotocol', async () => {
      const token = await tokenOf('operator');
      const inside = { headers: { 'sec-websocket-protocol': `v4.channel.k8s.io, ${encodedToken(token)}` } };
      const judge = (endpoint: Endpoint, { status, body }: Answer) =>
        assert.equal(status, statusOf(endpoint), `${nameOf(endpoint)}: ${body}`);
      await askAll(mayAll('alice'), judge);
      if (place.lacks('roles') !== false) return;
      await askAll(bearer(token), judge);
      const websockets = endpoints.filter(({ upgrade }) => upgrade === 'websocket');
      await askAll(inside, judge, { among: websockets });
    });

    it('gives a client with one permission access to the endpoints of that permission only', {
      skip: place.lacks('roles'),
    }, async () => {
      const isOpenTo = (endpoint: Endpoint, subresource: string) =>
        endpoint.verb === 'get' && endpoint.subresources.includes(subresource);
      for (const [user, subresource] of [
        ['scraper', 'metrics'],
        // A GET permission for the proxy does not allow exec, attach or port-forward, whatever the
        // HTTP method.
        ['reader', 'proxy'],
      ] as const) {
        await askAll(certificateOf(user), (endpoint, { status, body }) => {
          const expected = isOpenTo(endpoint, subresource) ? statusOf(endpoint) : 403;
          assert.equal(status, expected, `${nameOf(endpoint)} by ${user}: ${body}`);
        });
      }
    });

    it('authorizes only recently authorized clients while the API server is unreachable', async () => {
      const known = mayAll('alice');
      const lena = mayAll('lena');
      const token = bearer(await tokenOf('later'));
      assert.equal((await call(node, '/metrics', known)).status, 200);
      // While the API server is unreachable, each uncached authorization is tried several times
      // before it fails, so all endpoints are requested concurrently to save time.
      const together = { atOnce: endpoints.length };
      await cluster.door.shut();
      try {
        assert.equal((await call(node, '/metrics', known)).status, 200, 'what was said is kept for a while');
        await askAll(
          lena,
          (endpoint, { status, body }) => {
            const [subresource] = endpoint.subresources;
            const who = `user=lena, verb=${endpoint.verb}, resource=nodes, subresource=${subresource}`;
            assert.equal(`${status} ${body}`, `500 Authorization error (${who})`, nameOf(endpoint));
          },
          together,
        );
        await askAll(
          token,
          (endpoint, { status, body }) =>
            assert.equal(`${status} ${body}`, '401 Unauthorized', nameOf(endpoint)),
          together,
        );
        await askAll({}, (endpoint, { status }) => assert.equal(status, 401, nameOf(endpoint)));
      } finally {
        await cluster.door.reopen();
      }
      assert.equal((await call(node, '/metrics', lena)).status, 200, 'errors are not kept');
      const allowed = place.lacks('roles') === false ? 200 : 403;
      assert.equal((await call(node, '/metrics', token)).status, allowed, 'errors are not kept');
    });
  });
}
