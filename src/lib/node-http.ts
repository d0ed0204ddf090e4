import type http from 'node:http';

/**
 * Node's HTTP. Not imported as other modules are: an import loads all that a module offers, and this one offers a whole
 * second HTTP client, which nobody here uses and which takes megabytes.
 */
export const nodeHttp: typeof http = process.getBuiltinModule('node:http');
