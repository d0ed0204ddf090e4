// Parses the part of proto3 that our wire definitions use: messages, enums, services, maps, oneofs,
// nesting. A nested type is moved to the top level, and its name is prefixed with the name of the
// outer type. Anything else is rejected.

/** @type {import('./parse-proto.mjs').parseProto} */
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
  const skipPast = (token) => {
    while (next() !== token);
  };
  const number = () => {
    const negative = tokens[at.index] === '-' ? next() : '';
    const value = Number(negative + next());
    return Number.isInteger(value) ? value : fail('a whole number before this');
  };

  while (at.index < tokens.length) {
    const keyword = next();
    if (keyword === 'package') {
      file.package = next();
      expect(';');
    } else if (keyword === 'message') readMessage(undefined);
    else if (keyword === 'enum') readEnum(undefined);
    else if (keyword === 'service') readService();
    else if (['syntax', 'import', 'option'].includes(keyword)) skipPast(';');
    else if (keyword !== ';') fail(`a definition instead of "${keyword}"`);
  }
  resolveTypes(file);
  for (const message of file.messages) refuseDuplicates(fileName, message.name, message.fields);
  return file;

  function readMessage(outer) {
    const own = next();
    const message = { name: (outer?.name ?? '') + own, outer, fields: [], nested: new Map() };
    outer?.nested.set(own, message.name);
    expect('{');
    readFields(message, 'single');
    file.messages.push(message);
  }

  function readFields(message, label) {
    for (let token = next(); token !== '}'; token = next()) {
      if (token === 'message') readMessage(message);
      else if (token === 'enum') readEnum(message);
      else if (token === 'oneof') {
        next();
        expect('{');
        readFields(message, 'optional');
      } else if (token === 'reserved' || token === 'option') skipPast(';');
      else if (token !== ';') message.fields.push(readField(token, label));
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
    field.name = next();
    expect('=');
    field.number = number();
    field.options = readOptions();
    return field;
  }

  /** The field options in brackets: names, each with an identifier, a quoted string or no value. */
  function readOptions() {
    const options = {};
    for (let token = next(); token !== ';'; token = next()) {
      if (!/^[A-Za-z_]/.test(token)) continue;
      if (tokens[at.index] !== '=') fail(`a value for the option ${token}`);
      at.index++;
      options[token] = next().replaceAll('"', '');
    }
    return options;
  }

  function readEnum(outer) {
    const own = next();
    const definition = { name: (outer?.name ?? '') + own, values: [] };
    outer?.nested.set(own, definition.name);
    expect('{');
    for (let token = next(); token !== '}'; token = next()) {
      if (token === 'option' || token === 'reserved') skipPast(';');
      else if (token !== ';') {
        expect('=');
        definition.values.push({ name: token, number: number() });
        skipPast(';');
      }
    }
    if (definition.values[0]?.number !== 0) fail(`the first value of ${definition.name} to be 0 before this`);
    file.enums.push(definition);
  }

  function readService() {
    const name = next();
    const service = { name, fullName: `${file.package}.${name}`, methods: [] };
    expect('{');
    for (let token = next(); token !== '}'; token = next()) {
      if (token === 'rpc') service.methods.push(readMethod());
      else if (token === 'option') skipPast(';');
      else if (token !== ';') fail(`a method instead of "${token}"`);
    }
    file.services.push(service);
  }

  function readMethod() {
    const method = { name: next(), serverStreaming: false };
    expect('(');
    method.request = next();
    if (method.request === 'stream') fail('no stream of requests, which we do not speak,');
    expect(')');
    expect('returns');
    expect('(');
    method.response = next();
    if (method.response === 'stream') Object.assign(method, { serverStreaming: true, response: next() });
    expect(')');
    if (next() === '{') skipPast('}');
    return method;
  }
}

function tokenize(text) {
  const found = text.match(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\]|\\.)*"|[A-Za-z0-9_.]+|[^\s]/g) ?? [];
  return found.filter((token) => !token.startsWith('//') && !token.startsWith('/*'));
}

function resolveTypes(file) {
  for (const message of file.messages) {
    for (const field of message.fields) field.type = resolveType(file, message, field.type);
  }
}

/**
 * A type that is nested in the message, or in one of its enclosing messages, takes precedence over
 * a type of the same name further outside.
 */
function resolveType(file, message, type) {
  const bare = type.replace(/^\.?google\.protobuf\./, '').replace(/^\./, '');
  const local = bare.startsWith(`${file.package}.`) ? bare.slice(file.package.length + 1) : bare;
  const [first, ...rest] = local.split('.');
  for (let scope = message; scope !== undefined; scope = scope.outer) {
    const lifted = scope.nested.get(first);
    if (lifted !== undefined) return [lifted, ...rest].join('');
  }
  return [first, ...rest].join('');
}

function refuseDuplicates(fileName, message, fields) {
  const seen = new Map();
  for (const field of fields) {
    for (const mark of [field.name, field.number]) {
      if (seen.has(mark))
        throw new Error(
          `${fileName}: ${message} uses the name or number ${mark} for both ${seen.get(mark)} and ${field.name}`,
        );
      seen.set(mark, field.name);
    }
    if (field.number < 1 || field.number > 536_870_911) {
      throw new Error(`${fileName}: ${message}.${field.name} cannot have the number ${field.number}`);
    }
  }
}
