// Renders the TypeScript types of the Kubernetes API kinds in their JSON form, and one table of
// their fields.

const jsonTypes = {
  string: 'string',
  bytes: 'string',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
  double: 'number',
  Time: 'string',
  MicroTime: 'string',
  Quantity: 'string',
  IntOrString: 'number | string',
  RawExtension: 'unknown',
  FieldsV1: 'unknown',
  ExtraValue: 'readonly string[]',
};

/** Kinds with apiVersion and kind: top-level objects and their lists. */
const isTopLevel = (message) =>
  message.name === 'DeleteOptions' ||
  message.fields.some(({ name, type }) => name === 'metadata' && /Meta$/.test(type));

export function renderKinds({ messages }) {
  const known = new Set(messages.map((message) => message.name));
  const parts = [
    '// Made from the .proto files of this package by `npm run generate`; do not edit.',
    '',
    ...messages.map((message) => renderInterface(message, known)),
    '/** One line a type: `Name|number name [list|map|inline] type [+required] [key=…] [merge] [retain]`. */',
    `export const kindTable = \`\n${messages.map(tableLine).join('\n')}\n\`;`,
  ];
  return `${parts.join('\n')}\n`;
}

function renderInterface(message, known) {
  const inline = message.fields.filter((field) => field.options.inline === 'true');
  const bases = inline.length === 0 ? '' : ` extends ${inline.map((field) => field.type).join(', ')}`;
  const own = message.fields.filter((field) => !inline.includes(field));
  const head = isTopLevel(message)
    ? ['  readonly apiVersion?: string | undefined;', '  readonly kind?: string | undefined;']
    : [];
  const lines = own.map((field) => renderField(field, known));
  return [`export interface ${message.name}${bases} {`, ...head, ...lines, '}'].join('\n');
}

function renderField(field, known) {
  const base = jsonTypes[field.type] ?? field.type;
  if (jsonTypes[field.type] === undefined && !known.has(field.type)) {
    throw new Error(`${field.name} has the unknown type ${field.type}`);
  }
  const type = typeOf(field, base);
  return isRequired(field)
    ? `  readonly ${field.name}: ${type};`
    : `  readonly ${field.name}?: ${type} | undefined;`;
}

function typeOf({ label }, base) {
  if (label === 'repeated') return `readonly ${base.includes(' ') ? `(${base})` : base}[]`;
  return label === 'map' ? `Readonly<Record<string, ${base}>>` : base;
}

function isRequired({ label, options }) {
  return label === 'repeated' || label === 'map' ? options.required === 'true' : label === 'single';
}

function tableLine({ name, fields }) {
  const parts = fields.map((field) => {
    const { options } = field;
    const shape = options.inline === 'true' ? 'inline' : { repeated: 'list', map: 'map' }[field.label];
    const marks = [
      isRequired(field) && shape !== 'inline' ? '+required' : undefined,
      options.merge_key === undefined ? undefined : `key=${options.merge_key}`,
      options.merge === undefined ? undefined : 'merge',
      options.retain_keys === undefined ? undefined : 'retain',
    ];
    return [field.number, field.name, shape, field.type, ...marks]
      .filter((part) => part !== undefined)
      .join(' ');
  });
  return [name, ...parts].join('|');
}
