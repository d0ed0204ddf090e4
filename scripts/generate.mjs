// Generates one TypeScript file per protobuf package under src/<package>/gen from the wire
// definitions under src/<package>/proto: the types, and a table that the codec in
// src/protocols/protobuf compiles on first use. The result is checked in. usage: npm run generate
// (or with --check: fail if anything would change)
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseProto } from './parse-proto.mjs';
import { renderKinds } from './render-kinds.mjs';

const repo = resolve(dirname(fileURLToPath(import.meta.url)), '..');

/** One entry per generated TypeScript file. */
const outputs = [
  { package: 'src/cri', file: 'runtime.ts', protocols: '../../protocols', protos: /^[^/]+\.proto$/ },
  { package: 'src/cri', file: 'containerd.ts', protocols: '../../protocols', protos: /^containerd\// },
  { package: 'src/probes', file: 'health.ts', protocols: '../../protocols', protos: /\.proto$/ },
  { package: 'src/plugins', file: 'registration.ts', protocols: '../../protocols', protos: /\.proto$/ },
  { package: 'src/resources/dra', file: 'plugin.ts', protocols: '../../../protocols', protos: /\.proto$/ },
  { package: 'src/volumes/csi', file: 'node.ts', protocols: '../../../protocols', protos: /\.proto$/ },
  {
    package: 'src/resources/devices',
    file: 'device-plugin.ts',
    protocols: '../../../protocols',
    protos: /\.proto$/,
  },
  {
    package: 'src/resources/pod-resources',
    file: 'pod-resources.ts',
    protocols: '../../../protocols',
    protos: /\.proto$/,
  },
  { package: 'src/kinds', file: 'kinds.ts', protos: /\.proto$/, render: renderKinds },
];

const scalarTypes = {
  string: 'string',
  bytes: 'Uint8Array',
  bool: 'boolean',
  int32: 'number',
  uint32: 'number',
  double: 'number',
  float: 'number',
  int64: 'bigint',
  uint64: 'bigint',
};

/** Well-known types that every package may use. */
const wellKnown = parseProto(
  'well-known',
  `message Timestamp { int64 seconds = 1; int32 nanos = 2; }
   message Any { string type_url = 1; bytes value = 2; }`,
);

const check = process.argv.includes('--check');
let stale = 0;
for (const output of outputs) {
  const text = (output.render ?? ((parsed) => render(output, parsed)))(readProtos(output));
  const path = join(repo, output.package, 'gen', output.file);
  if (existsSync(path) && readFileSync(path, 'utf8') === text) continue;
  if (check) {
    console.error(
      `${output.package}/gen/${output.file} does not match its .proto files: run npm run generate`,
    );
    stale++;
    continue;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  console.log(`wrote ${output.package}/gen/${output.file}`);
}
process.exitCode = stale === 0 ? 0 : 1;

function readProtos({ package: directory, protos }) {
  const folder = join(repo, directory, 'proto');
  const names = readdirSync(folder, { recursive: true })
    .filter((name) => protos.test(name))
    .sort();
  const all = { messages: [], enums: [], services: [] };
  for (const name of names) {
    const file = parseProto(name, readFileSync(join(folder, name), 'utf8'));
    for (const kind of Object.keys(all)) all[kind].push(...file[kind]);
  }
  const used = new Set(all.messages.flatMap((message) => message.fields.map((field) => field.type)));
  all.messages.push(...wellKnown.messages.filter((message) => used.has(message.name)));
  refuseTwins([...all.messages, ...all.enums]);
  return all;
}

/**
 * Throws if two types have the same name, which is possible because nested types are moved to the
 * top level.
 */
function refuseTwins(definitions) {
  const seen = new Set();
  for (const { name } of definitions) {
    if (seen.has(name)) throw new Error(`${name} is defined twice`);
    seen.add(name);
  }
}

function render({ protocols }, { messages, enums, services }) {
  const known = { messages: new Set(messages.map((m) => m.name)), enums: new Set(enums.map((e) => e.name)) };
  const parts = [
    '// Made from the .proto files of this package by `npm run generate`; do not edit.',
    grpcImport(services, protocols),
    `import { type MessageType, Schema } from '${protocols}/protobuf/index.ts';`,
    '',
    ...enums.map(renderEnum),
    ...messages.map((message) => renderInterface(message, known)),
    `const schema = new Schema(\`\n${[...enums.map(enumLine), ...messages.map(messageLine)].join('\n')}\n\`);`,
    '',
    ...messages.map((m) => `export const ${m.name}: MessageType<${m.name}> = schema.message('${m.name}');`),
    '',
    ...services.map(renderService),
  ];
  return `${parts.join('\n').trimEnd()}\n`;
}

function grpcImport(services, protocols) {
  if (services.length === 0) return '';
  const streams = services.flatMap((service) => service.methods.map((method) => method.serverStreaming));
  const names = [
    ...(streams.includes(true) ? ['type ServerStream'] : []),
    'type ServiceType',
    'serviceType',
    ...(streams.includes(false) ? ['type Unary'] : []),
  ];
  return `import { ${names.join(', ')} } from '${protocols}/grpc/index.ts';`;
}

function renderEnum({ name, values }) {
  const names = [...values.map((value) => value.name), 'UNRECOGNIZED'];
  return `export type ${name} = ${names.map((value) => `'${value}'`).join(' | ')};`;
}

function renderInterface({ name, fields }, known) {
  const lines = fields.map((field) => `  readonly ${camel(field.name)}: ${typeOf(name, field, known)};`);
  return [`export interface ${name} {`, ...lines, '}'].join('\n');
}

function typeOf(message, field, known) {
  const base = scalarTypes[field.type] ?? field.type;
  const isMessage = known.messages.has(field.type);
  if (scalarTypes[field.type] === undefined && !isMessage && !known.enums.has(field.type)) {
    throw new Error(`${message}.${field.name} has the unknown type ${field.type}`);
  }
  if (field.label === 'repeated') return `readonly ${base}[]`;
  if (field.label === 'map') return `Readonly<Record<string, ${base}>>`;
  return field.label === 'optional' || isMessage ? `${base} | undefined` : base;
}

function enumLine({ name, values }) {
  return `enum ${name}|${values.map((value) => `${value.name} ${value.number}`).join('|')}`;
}

function messageLine({ name, fields }) {
  const parts = fields.map((field) => {
    const label =
      field.label === 'map' ? `map ${field.key} ` : field.label === 'single' ? '' : `${field.label} `;
    return `${field.number} ${camel(field.name)} ${label}${field.type}`;
  });
  return [`message ${name}`, ...parts].join('|');
}

function renderService({ name, fullName, methods }) {
  const types = methods.map((method) => {
    const kind = method.serverStreaming ? 'ServerStream' : 'Unary';
    return `  readonly ${lowerFirst(method.name)}: ${kind}<${method.request}, ${method.response}>;`;
  });
  const table = methods.map((method) => {
    const kind = method.serverStreaming ? 'server-stream' : 'unary';
    return `  ${lowerFirst(method.name)}: { name: '${method.name}', kind: '${kind}', request: ${method.request}, response: ${method.response} },`;
  });
  return [
    `export interface ${name}Methods {`,
    ...types,
    '}',
    '',
    `export const ${name}: ServiceType<${name}Methods> = serviceType<${name}Methods>('${fullName}', {`,
    ...table,
    '});',
    '',
  ].join('\n');
}

function camel(name) {
  return name.replace(/_+([a-zA-Z0-9])/g, (_, letter) => letter.toUpperCase());
}

function lowerFirst(name) {
  return name[0].toLowerCase() + name.slice(1);
}
