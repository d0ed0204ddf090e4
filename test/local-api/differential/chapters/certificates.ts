import { ask, chapter, create, patch, type Step } from '../step.ts';

const all = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

/** A certificate request for `/O=system:nodes/CN=system:node:n1`, whose key was discarded. */
const request = [
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIc01JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITj',
  'VjM1JsYlRwdWIyUmxjekVYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJn',
  'Z3Foa2pPUFFNQkJ3TkNBQVQ2MXNFTlJTaUJmRU16CmxCK1g2OG5GTklZc2NvemxGOG1QUDJXZFBMOWpPMEhVeEMxSD',
  'lCOERUOTQrR3NQdmZpMERlVG1uUjU4VlpTa0QKaStMc202SGFvQUF3Q2dZSUtvWkl6ajBFQXdJRFNRQXdSZ0loQU55',
  'RjlEd3dEbk41dGh6MndNdkdzbnZXL25GaApTcGNNRzRWN1lxWmlDMnc3QWlFQWlnWk53dFRwVmpnS1dxZkowV1Brbi',
  '8zby9paEM4RXZSaDc3R2crcGRqbFk9Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=',
].join('');

const csr = (name: string, spec: object = {}) => ({
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'CertificateSigningRequest',
  metadata: { name },
  spec: { request, signerName: 'example.org/signer', usages: ['client auth'], ...spec },
});
const client = {
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  usages: ['digital signature', 'client auth'],
};
const condition = (type: string, status = 'True') => ({ type, status, reason: 'Test', message: 'by hand' });

function asking(): readonly Step[] {
  return [
    create(all, csr('csr-a')),
    create(all, csr('csr-b', { request: 'AAAA' })),
    create(all, csr('csr-c', { signerName: 'plain' })),
    create(all, csr('csr-d', { signerName: undefined })),
    create(all, csr('csr-e', { usages: [] })),
    create(all, csr('csr-f', { usages: ['x', 'client auth', 'client auth'] })),
    create(all, csr('csr-g', { expirationSeconds: 10 })),
    create(all, csr('csr-h', { username: 'somebody', groups: ['else'], uid: 'u' })),
    create(`${all}?dryRun=All`, csr('csr-i', { signerName: 'kubernetes.io/legacy-unknown' })),
    create(all, csr('csr-j', client), { as: 'node', what: 'a node requests its certificate' }),
    ask(`GET ${all}/csr-j`, {
      until: ({ body }) => 'certificate' in ((body as { readonly status?: object }).status ?? {}),
      compare: issued,
      what: 'a node reads its certificate',
    }),
    ask(`GET ${all}/csr-a`, { as: 'node' }),
    ask(all.replace(/^/, 'GET '), { as: 'node', compare: () => '' }),
  ];
}

/** Removes the approval message, whose wording differs between servers. */
function issued(body: unknown): unknown {
  const { kind, spec, status } = body as {
    readonly kind?: string;
    readonly spec?: object;
    readonly status?: {
      readonly certificate?: string;
      readonly conditions?: readonly Readonly<Record<string, unknown>>[];
    };
  };
  const conditions = status?.conditions?.map(({ type, status: how, reason }) => ({
    type,
    status: how,
    reason,
  }));
  return { kind, spec, certificate: status?.certificate, conditions };
}

function answering(): readonly Step[] {
  return [
    ask(`GET ${all}/csr-a/approval`),
    patch('merge', `${all}/csr-a`, { spec: { usages: ['server auth'] } }),
    patch('merge', `${all}/csr-a`, { metadata: { labels: { a: 'b' } } }),
    patch('merge', `${all}/csr-a`, { status: { conditions: [condition('Approved')] } }),
    patch('merge', `${all}/csr-a/status`, { status: { conditions: [condition('Approved')] } }),
    patch('merge', `${all}/csr-a/approval`, { status: { conditions: [condition('Approved', 'False')] } }),
    patch('merge', `${all}/csr-a/approval`, { status: { conditions: [{ type: 'Approved' }] } }),
    patch('merge', `${all}/csr-a/approval`, {
      status: { conditions: [condition('Approved')], certificate: 'AAAA' },
    }),
    patch('merge', `${all}/csr-a/approval`, { status: { conditions: [condition('Denied')] } }),
    patch('merge', `${all}/csr-a/approval`, {
      status: { conditions: [condition('Approved'), condition('Denied')] },
    }),
    patch('merge', `${all}/csr-a/status`, { status: { certificate: 'AAAA' } }),
    patch('merge', `${all}/csr-a/status`, {
      status: { conditions: [condition('Approved'), condition('Failed')] },
    }),
    patch('merge', `${all}/csr-h/approval`, { status: { conditions: [condition('Denied')] } }),
    patch('merge', `${all}/csr-h/approval`, { status: { conditions: [] } }),
    patch('merge', `${all}/csr-a/approval`, { status: { conditions: [] } }, { as: 'node' }),
    ask(`DELETE ${all}/csr-a`),
    ask(`DELETE ${all}/csr-h`, { as: 'node' }),
  ];
}

export const certificates = chapter('certificates', [...asking(), ...answering()]);
