// Reads the part of the proto3 language our wire definitions use: messages, enums, services, maps, oneofs, nesting.
// Nested types are lifted to the top under their own name prefixed with the outer one's.

export function parseProto(fileName, text) {
  const tokens = tokenize(text);
  const file = { package: '', messages: [], enums: [], services: [] };
  const at = { index: 0 };
  const fail = (what) => {
    throw new Error(`${fileName}: expected ${what} near "${tokens.slice(at.index, at.index + 5).join(' ')}"`);
  };
  const next = () => tokens[at.index++] ?? fail('more text');
  const expect = (token) => {
    if (tokens[at.index] !== token) fail(`"${token}"`);
    at.index++;
  };
  const skipStatement = () => {
    while (next() !== ';');
  };

  while (at.index < tokens.length) {
    const keyword = next();
    if (keyword === 'package') {
      file.package = next();
      expect(';');
    } else if (keyword === 'message') readMessage('');
    else if (keyword === 'enum') readEnum('');
    else if (keyword === 'service') readService();
    else skipStatement();
  }
  resolveTypes(file);
  return file;

  function readMessage(prefix) {
    const message = { name: prefix + next(), fields: [], nested: new Map() };
    expect('{');
    readFields(message, 'single');
    file.messages.push(message);
    return message;
  }

  function readFields(message, label) {
    for (let token = next(); token !== '}'; token = next()) {
      if (token === ';') continue;
      if (token === 'message' || token === 'enum') {
        const inner = (token === 'message' ? readMessage : readEnum)(message.name);
        message.nested.set(inner.name.slice(message.name.length), inner.name);
      } else if (token === 'oneof') {
        next();
        expect('{');
        readFields(message, 'optional');
      } else if (token === 'reserved' || token === 'option') skipStatement();
      else message.fields.push(readField(token, label));
    }
  }

  function readField(first, label) {
    const field = { label, key: undefined, type: first };
    if (first === 'repeated' || first === 'optional') Object.assign(field, { label: first, type: next() });
    else if (first === 'map') {
      expect('<');
      field.key = next();
      expect(',');
      Object.assign(field, { label: 'map', type: next() });
      expect('>');
    }
    field.type = field.type.replace(/^google\.protobuf\./, '');
    field.name = next();
    expect('=');
    field.number = Number(next());
    skipStatement();
    return field;
  }

  function readEnum(prefix) {
    const definition = { name: prefix + next(), values: [] };
    expect('{');
    for (let token = next(); token !== '}'; token = next()) {
      if (token === ';') continue;
      if (token === 'option' || token === 'reserved') {
        skipStatement();
        continue;
      }
      expect('=');
      definition.values.push({ name: token, number: Number(next()) });
      skipStatement();
    }
    file.enums.push(definition);
    return definition;
  }

  function readService() {
    const name = next();
    const service = { name, fullName: `${file.package}.${name}`, methods: [] };
    expect('{');
    for (let token = next(); token !== '}'; token = next()) {
      if (token !== 'rpc') continue;
      const method = { name: next(), serverStreaming: false };
      expect('(');
      method.request = next();
      expect(')');
      expect('returns');
      expect('(');
      method.response = next();
      if (method.response === 'stream') Object.assign(method, { serverStreaming: true, response: next() });
      expect(')');
      service.methods.push(method);
    }
    file.services.push(service);
  }
}

function tokenize(text) {
  const bare = text.replace(/\/\*[\s\S]*?\*\//g, ' ').replace(/\/\/[^\n]*/g, ' ');
  return bare.match(/"[^"]*"|[A-Za-z0-9_.]+|[^\s]/g) ?? [];
}

/** A type nested in a message wins over an outer one of the same name. */
function resolveTypes(file) {
  for (const message of file.messages) {
    for (const field of message.fields) field.type = message.nested.get(field.type) ?? field.type;
  }
}
